"""Reads of several tables, for lists and reports."""
