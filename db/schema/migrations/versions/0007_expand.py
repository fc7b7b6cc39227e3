"""Events say which attempt of a task wrote them, and since when it was ready and claimed."""

import sqlalchemy as sa
from alembic import op

revision = "0007_expand"
down_revision = "0006_contract"

COLUMNS = {"attempt": sa.Integer, "ready_at": sa.Double, "claimed_at": sa.Double}


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    there = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("event")}
    for name, kind in COLUMNS.items():
        if name not in there:
            op.add_column("event", sa.Column(name, kind()))
