"""An example: conductors report their zone, and not any more by how much their clock is ahead."""

import sqlalchemy as sa
from alembic import op
from stoker.db.schema import revisions

revision = revisions.expanded(revisions.NUMBER + 1)
down_revision = revisions.NEWEST


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    columns = {column["name"]: column for column in sa.inspect(op.get_bind()).get_columns("conductor")}
    if "zone" not in columns:
        op.add_column("conductor", sa.Column("zone", sa.String(length=64)))
    if columns["clock_ahead"]["default"] is None:
        with op.batch_alter_table("conductor") as conductor:  # SQLite can change no column in its place.
            conductor.alter_column(
                "clock_ahead", existing_type=sa.Double(), existing_nullable=False, server_default="0"
            )
