"""Templates, environments and file sets, stored once however many stacks share them."""

import hashlib
import json
import typing
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection

from . import tables
from .errors import NotFound
from .ids import ContentId

Json = typing.Any


def content_id(body: Json) -> ContentId:
    """SHA-256 of the canonical text: keys sorted, no white space."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return ContentId(hashlib.sha256(text.encode()).hexdigest())


def put(conn: Connection, body: Json, now: float) -> ContentId:
    """Store the body unless an equal one is there; its id either way."""
    key = content_id(body)
    row = {"id": key, "body": body, "created_at": now}
    conn.execute(_insert_if_absent(conn, row))
    return key


def _insert_if_absent(conn: Connection, row: dict[str, Json]) -> sa.Insert:
    table = tables.content
    if conn.dialect.name in ("mysql", "mariadb"):
        return mysql.insert(table).values(row).on_duplicate_key_update(id=row["id"])
    if conn.dialect.name == "postgresql":
        return postgresql.insert(table).values(row).on_conflict_do_nothing(index_elements=["id"])
    return sqlite.insert(table).values(row).on_conflict_do_nothing(index_elements=["id"])


def get(conn: Connection, key: ContentId) -> Json:
    """:raises NotFound: no such content."""
    bodies = get_many(conn, [key])
    if key not in bodies:
        raise NotFound("Template", key)
    return bodies[key]


def get_many(conn: Connection, keys: Iterable[ContentId]) -> dict[ContentId, Json]:
    """Those of the contents that there are."""
    c = tables.content
    rows = conn.execute(sa.select(c.c.id, c.c.body).where(c.c.id.in_(sorted(set(keys)))))
    return {ContentId(key): body for key, body in rows}
