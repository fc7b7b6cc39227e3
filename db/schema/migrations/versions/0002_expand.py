"""Tasks say which request they are for; what writes no topic of conductors is allowed to."""

import sqlalchemy as sa
from alembic import op

revision = "0002_expand"
down_revision = "0001"


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    if not any(column["name"] == "request" for column in sa.inspect(op.get_bind()).get_columns("task")):
        op.add_column("task", sa.Column("request", sa.String(length=64), nullable=True))
    with op.batch_alter_table("conductor") as conductor:  # SQLite can change no column in its place.
        conductor.alter_column(
            "topic",
            existing_type=sa.String(length=255),
            existing_nullable=False,
            server_default="stoker.work",
        )
