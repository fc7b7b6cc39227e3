"""Resource types whose resources are stacks, and groups of them."""
