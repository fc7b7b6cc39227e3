"""Facts about the installation that stay as they were when the database was made."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables, upserts
from .errors import ShardCountMismatch

SHARD_COUNT = "shard_count"
DEFAULT_SHARD_COUNT = 4096


def shard_count(conn: Connection, configured: int | None = None) -> int:
    """The number of shards; stored at the first call.

    :param configured: what the operator wants, None: whatever is stored, else the default.
    :raises ShardCountMismatch: another number is stored.
    :raises ValueError: it is no number of shards.
    """
    if configured is not None and configured < 1:
        raise ValueError(f"shard_count must be 1 or more, not {configured}")
    s = tables.setting
    query = sa.select(s.c.value).where(s.c.name == SHARD_COUNT)
    stored = conn.execute(query).scalar()
    if stored is None:
        # Several may be the first at the same moment.
        row = {"name": SHARD_COUNT, "value": configured or DEFAULT_SHARD_COUNT}
        conn.execute(upserts.insert_or_update(conn, s, row, []))
        stored = conn.execute(query).scalar_one()
    if configured is not None and configured != stored:
        raise ShardCountMismatch(stored, configured)
    return int(stored)
