"""Types of the DNS service."""
