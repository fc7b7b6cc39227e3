"""The steps of each kind of task: one class a kind."""
