"""Types of the identity service."""
