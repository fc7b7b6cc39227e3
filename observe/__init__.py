"""Metrics, and the stack and request that each line of the log belongs to."""
