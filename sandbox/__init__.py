"""Evaluates what users write (YAQL, regular expressions) in helper processes with limits.

Both can hold the interpreter's lock in C code for ever, so that no deadline in this process could end them.
"""
