"""Types of the service for container clusters."""
