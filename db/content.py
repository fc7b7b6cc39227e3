"""Templates, environments and file sets, which are stored once however many stacks share them."""

import hashlib
import json
import threading
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

import sqlalchemy as sa
from cachetools import LRUCache
from sqlalchemy.engine import Connection

from ..shapes import Json, JsonMap
from . import bulk, statements
from .bulk import OneOf
from .errors import NotFound
from .ids import ContentId, SnapshotId, StackId
from .rows import GOAL
from .schema import tables

FRESH = 3600.0
"""Seconds after which a content that is stored again is marked as stored now."""
KEEP_UNUSED = 4 * FRESH
"""Seconds since its mark for which a content is kept, used or not.

A transaction that finds a fresh content may use it without a lock.  So this is longer than FRESH by far more
than any transaction lasts.
"""


Holder = typing.TypeVar("Holder", StackId, SnapshotId)


def content_id(body: Json) -> ContentId:
    """Return the SHA-256 of the canonical text: keys sorted, no white space."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return ContentId(hashlib.sha256(text.encode()).hexdigest())


_FRESH = sa.select(tables.content.c.id).where(
    OneOf(tables.content.c.id), tables.content.c.created_at > sa.bindparam("since")
)


def put(conn: Connection, body: Json, now: float) -> ContentId:
    """Store a body unless an equal one exists; return its id either way."""
    return put_many(conn, [body], now)[0]


def put_many(conn: Connection, bodies: Sequence[Json], now: float) -> list[ContentId]:
    """Store the bodies to which no equal ones exist; return the ids of all."""
    keys = [content_id(body) for body in bodies]
    put_by_key(conn, dict(zip(keys, bodies, strict=True)), now)
    return keys


def put_by_key(conn: Connection, bodies: Mapping[ContentId, Json], now: float) -> None:
    """Store those of the bodies, by their ids, that do not exist; and mark those as stored now that are old.

    A fresh content is not locked, because many stacks that share it are created side by side.  Others are
    locked in the order of their ids.
    """
    fresh = conn.execute(_FRESH, {"ids": sorted(bodies), "since": now - FRESH}).scalars().all()
    for key in sorted(bodies.keys() - set(fresh)):
        row = {"id": key, "body": bodies[key], "created_at": now}
        conn.execute(statements.insert_or_update(conn, tables.content, row, ["created_at"]))


def get(conn: Connection, key: ContentId) -> Json:
    """Return a content.

    :raises NotFound: no such content.
    """
    bodies = get_many(conn, [key])
    if key not in bodies:
        raise NotFound("Template", key)
    return bodies[key]


def get_all(conn: Connection, keys: Iterable[ContentId]) -> dict[ContentId, Json]:
    """Return contents by their ids.

    :raises NotFound: one of them does not exist.
    """
    bodies = get_many(conn, keys)
    for key in keys:
        if key not in bodies:
            raise NotFound("Template", key)
    return bodies


def get_many(conn: Connection, keys: Iterable[ContentId]) -> dict[ContentId, Json]:
    """Return the contents that exist, by their ids."""
    c = tables.content
    rows = conn.execute(sa.select(c.c.id, c.c.body).where(c.c.id.in_(sorted(set(keys)))))
    return {ContentId(key): body for key, body in rows}


class ContentCache:
    """Contents that were read last.  They never change, so any number of threads may share them, to read.

    :param most: characters of their JSON texts, in all.
    """

    def __init__(self, most: int = 4 * 1024 * 1024) -> None:
        self._lock = threading.Lock()
        self._bodies: LRUCache[ContentId, tuple[Json, int]] = LRUCache(most, getsizeof=lambda kept: kept[1])

    def get(self, read: Callable[[Callable[[Connection], Json]], Json], key: ContentId) -> Json:
        """Return a content.

        :param read: runs a function in a transaction, as `Database.read` does.
        :raises NotFound: no such content.
        """
        with self._lock:
            if key in self._bodies:
                return self._bodies[key][0]
        body = read(lambda conn: get(conn, key))
        size = len(json.dumps(body))
        if size <= self._bodies.maxsize:
            with self._lock:
                self._bodies[key] = body, size
        return body


def renamed(goal: JsonMap, old: ContentId, new: ContentId) -> dict[str, Json]:
    """Return a stored goal that refers to the new content where it referred to the old one."""
    return {name: new if name in GOAL and value == old else value for name, value in goal.items()}


def set_uses(conn: Connection, holder: Holder, keys: Iterable[ContentId]) -> None:
    """Store which contents a stack or a snapshot uses; the purge keeps those."""
    u = tables.content_use
    conn.execute(sa.delete(u).where(u.c.holder_id == holder))
    add_uses(conn, {holder: keys})


def add_uses(conn: Connection, holders: Mapping[Holder, Iterable[ContentId]]) -> None:
    """Store which contents new stacks or snapshots use."""
    bulk.insert(conn, tables.content_use, uses(holders))


def uses(holders: Mapping[Holder, Iterable[ContentId]]) -> list[bulk.Row]:
    """Return the rows that say which contents stacks or snapshots use."""
    pairs = [(holder, key) for holder, keys in holders.items() for key in sorted(set(keys))]
    return [{"holder_id": holder, "content_id": key} for holder, key in pairs]


def purge_unused(
    conn: Connection, now: float, *, limit: int, after: ContentId | None = None
) -> tuple[int, ContentId | None]:
    """Read the next `limit` contents in the order of their ids, and delete those that nothing uses.

    :param after: id of the last content read before; the cost is that of `limit` rows, however many exist.
    :returns: how many were deleted, and the id to continue after; None: these were the last ones.
    """
    c = tables.content
    u = tables.content_use
    unused = (c.c.created_at < now - KEEP_UNUSED, ~sa.exists().where(u.c.content_id == c.c.id))
    chunk = list(
        conn.execute(sa.select(c.c.id).where(c.c.id > (after or "")).order_by(c.c.id).limit(limit)).scalars()
    )
    count = conn.execute(sa.delete(c).where(c.c.id.in_(chunk), *unused)).rowcount
    return count, ContentId(chunk[-1]) if len(chunk) == limit else None
