"""Encryption of secrets at rest, and the forms in which values are stored."""
