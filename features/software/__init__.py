"""Software configs and deployments over the API."""
