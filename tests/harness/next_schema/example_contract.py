"""An example: the zone of conductors that have reported none is filled, and the old column goes."""

import sqlalchemy as sa
from alembic import op
from stoker.db.schema import revisions

revision = revisions.newest(revisions.NUMBER + 1)
down_revision = revisions.expanded(revisions.NUMBER + 1)

BATCH = 2
CONDUCTOR = sa.table("conductor", sa.column("host"), sa.column("zone"))


def move_batch(conn: sa.Connection) -> int:
    """Fill some rows; return how many."""
    c = CONDUCTOR.c
    hosts = (
        conn.execute(sa.select(c.host).where(c.zone.is_(None)).order_by(c.host).limit(BATCH)).scalars().all()
    )
    conn.execute(sa.update(CONDUCTOR).where(c.host.in_(hosts)).values(zone="none"))
    return len(hosts)


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    if any(column["name"] == "clock_ahead" for column in sa.inspect(op.get_bind()).get_columns("conductor")):
        with op.batch_alter_table("conductor") as conductor:
            conductor.drop_column("clock_ahead")
