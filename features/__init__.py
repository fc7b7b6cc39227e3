"""Features: what the kernel does without, each in one folder."""
