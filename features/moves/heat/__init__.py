"""Heat's database: its tables, its encryption, and the trees of stacks that are read from it."""
