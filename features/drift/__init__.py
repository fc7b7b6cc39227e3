"""Observes what users change in the cloud behind their stacks, shows it, and heals it."""
