"""Types of the alarming service."""
