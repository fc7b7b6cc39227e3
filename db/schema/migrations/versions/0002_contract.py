"""The topic of conductors goes: it was the same for all, and a part of the messages' contract."""

import sqlalchemy as sa
from alembic import op

revision = "0002_contract"
down_revision = "0002_expand"


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    if any(column["name"] == "topic" for column in sa.inspect(op.get_bind()).get_columns("conductor")):
        with op.batch_alter_table("conductor") as conductor:
            conductor.drop_column("topic")
