"""The HTTP server of the API."""
