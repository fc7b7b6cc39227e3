"""Facts about the installation that stay as they were when the database was made."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables
from .errors import ShardCountMismatch

SHARD_COUNT = "shard_count"
DEFAULT_SHARD_COUNT = 4096


def shard_count(conn: Connection, configured: int | None = None) -> int:
    """The number of shards; stored at the first call.

    :param configured: what the operator wants, None: whatever is stored, else the default.
    :raises ShardCountMismatch: another number is stored.
    """
    s = tables.setting
    stored = conn.execute(sa.select(s.c.value).where(s.c.name == SHARD_COUNT).with_for_update()).scalar()
    if stored is None:
        stored = configured or DEFAULT_SHARD_COUNT
        conn.execute(sa.insert(s).values(name=SHARD_COUNT, value=stored))
    if configured is not None and configured != stored:
        raise ShardCountMismatch(stored, configured)
    return int(stored)
