"""Heat's own resource types: those that need no other service."""
