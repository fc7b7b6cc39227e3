"""Types of the object storage service."""
