"""The conductor: runs the tasks of stacks and does the duties over its slice."""
