"""Types of the key manager."""
