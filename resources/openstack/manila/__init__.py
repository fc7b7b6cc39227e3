"""Types of the service for shared file systems."""
