"""Duties: periodic work over the slice, one duty per file."""
