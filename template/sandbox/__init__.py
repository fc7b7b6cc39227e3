"""Evaluates users' YAQL expressions and regular expressions in helper processes with limits.

Both can hold the interpreter's lock in C code without end, where no deadline of this process could stop them.
"""
