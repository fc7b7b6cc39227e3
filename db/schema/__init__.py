"""Tables, and their migrations."""
