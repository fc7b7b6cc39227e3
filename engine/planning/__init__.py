"""Plans of traversals, and checks of templates: pure functions of values, without a database."""
