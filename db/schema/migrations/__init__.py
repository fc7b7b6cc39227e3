"""The migrations of the schema, and the entry by which Alembic runs them."""
