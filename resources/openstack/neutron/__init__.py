"""Types of the network service."""
