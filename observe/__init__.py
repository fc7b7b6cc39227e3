"""Metrics, and what each line of the log belongs to."""
