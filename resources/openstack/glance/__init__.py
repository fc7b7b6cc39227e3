"""Types of the image service."""
