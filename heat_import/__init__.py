"""Moves stacks from a database of Heat's into Stoker's, without a call of any service of the cloud."""
