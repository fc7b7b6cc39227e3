"""PostgreSQL learns that events spread over many stacks."""

from alembic import op

revision = "0002_expand"
down_revision = "0001"


def upgrade() -> None:
    """Say how many stacks there are at least."""
    if op.get_bind().dialect.name == "postgresql":
        # Seen in a sample, a stack of many events makes all look like it.  To find its last event PostgreSQL
        # would go through those of all stacks then.
        op.execute("ALTER TABLE event ALTER COLUMN stack_id SET (n_distinct = -0.05)")
