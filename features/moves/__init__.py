"""Moves stacks from Heat into Stoker, and back."""
