"""Explains why stacks are not finished, and shows the conductors that are to finish them."""
