"""Facts about the installation, which are stored once and never change."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..settings import setting
from ..shapes import Json
from . import statements
from .errors import ShardCountMismatch
from .schema import tables

SHARD_COUNT = "shard_count"
SIGNAL_KEY = "signal_key"
DEFAULT_SHARD_COUNT = 4096


@dataclass(frozen=True)
class InstallationSettings:
    """Facts about an installation that its operator may choose once."""

    shard_count: int | None = setting(
        "shard_count",
        None,
        "Number of shards of the ring. It is set when the database is first used (default 4096), and cannot "
        "be changed.",
        least=1,
    )


def shard_count(conn: Connection, configured: int | None = None) -> int:
    """Return the number of shards, which the first call stores.

    :param configured: the operator's number; None: the stored one, or the default.
    :raises ShardCountMismatch: another number is stored.
    :raises ValueError: the number is smaller than 1.
    """
    if configured is not None and configured < 1:
        raise ValueError(f"shard_count must be 1 or more, not {configured}")
    stored = _get_or_insert(conn, SHARD_COUNT, configured or DEFAULT_SHARD_COUNT)
    if configured is not None and configured != stored:
        raise ShardCountMismatch(stored, configured)
    return int(stored)


def signal_key(conn: Connection, fresh: Json) -> Json:
    """Return the key that signs the addresses of signals, sealed; the first call stores it.

    It is not a configured key, so addresses that others have keep working when those are rotated.

    :param fresh: a new key, sealed.
    """
    return _get_or_insert(conn, SIGNAL_KEY, fresh)


def stored_signal_key(conn: Connection) -> Json:
    """Return the key that signs the addresses of signals, sealed; None: there is none yet."""
    s = tables.setting
    return conn.execute(sa.select(s.c.value).where(s.c.name == SIGNAL_KEY)).scalar()


def forget_signal_key(conn: Connection, stored: Json) -> None:
    """Remove that key, so that the next process makes another one.

    :param stored: the key as it was read; another one stays.
    """
    s = tables.setting
    conn.execute(sa.delete(s).where(s.c.name == SIGNAL_KEY, s.c.value == stored))


def _get_or_insert(conn: Connection, name: str, first: Json) -> Json:
    s = tables.setting
    query = sa.select(s.c.value).where(s.c.name == name)
    stored = conn.execute(query).scalar()
    if stored is None:
        # Several processes may be the first at the same moment.
        conn.execute(statements.insert_or_update(conn, s, {"name": name, "value": first}, []))
        stored = conn.execute(query).scalar_one()
    return stored
