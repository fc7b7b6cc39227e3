"""Tasks: their transitions, claims and results."""
