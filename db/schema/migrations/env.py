"""Alembic's entry: runs the migrations on the connection that upgrade.py opens."""

from alembic import context
from stoker.db.schema import tables

context.configure(connection=context.config.attributes["connection"], target_metadata=tables.metadata)
with context.begin_transaction():
    context.run_migrations()
