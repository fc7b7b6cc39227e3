"""Facts about the installation that stay as they were when the database was made."""

import typing

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import upserts
from .errors import ShardCountMismatch
from .schema import tables

Json = typing.Any
SHARD_COUNT = "shard_count"
SIGNAL_KEY = "signal_key"
DEFAULT_SHARD_COUNT = 4096


def shard_count(conn: Connection, configured: int | None = None) -> int:
    """The number of shards; stored at the first call.

    :param configured: what the operator wants, None: whatever is stored, else the default.
    :raises ShardCountMismatch: another number is stored.
    :raises ValueError: it is no number of shards.
    """
    if configured is not None and configured < 1:
        raise ValueError(f"shard_count must be 1 or more, not {configured}")
    stored = _kept(conn, SHARD_COUNT, configured or DEFAULT_SHARD_COUNT)
    if configured is not None and configured != stored:
        raise ShardCountMismatch(stored, configured)
    return int(stored)


def signal_key(conn: Connection, fresh: Json) -> Json:
    """The key that signs the addresses of signals; stored at the first call.

    It is not one of the configuration's, so that addresses which are out in the world outlive those.

    :param fresh: a new one, sealed.
    :returns: the one that is stored, sealed.
    """
    return _kept(conn, SIGNAL_KEY, fresh)


def _kept(conn: Connection, name: str, first: Json) -> Json:
    s = tables.setting
    query = sa.select(s.c.value).where(s.c.name == name)
    stored = conn.execute(query).scalar()
    if stored is None:
        # Several may be the first at the same moment.
        conn.execute(upserts.insert_or_update(conn, s, {"name": name, "value": first}, []))
        stored = conn.execute(query).scalar_one()
    return stored
