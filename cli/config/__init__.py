"""The options of Stoker's programs, and how they are read."""
