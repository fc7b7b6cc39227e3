"""Shows what a creation or an update would do, and validates templates."""
