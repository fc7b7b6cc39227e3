"""The REST API: Heat's, version 1."""
