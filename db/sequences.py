"""Blocks of ids, which are reserved before the rows that will have them are stored."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .schema import tables

ROWS = "rows"
"""The sequence that resources and tasks share."""


def reserve(conn: Connection, count: int, *, name: str = ROWS) -> int:
    """Reserve ids, and return the first of `count` that nobody else gets.

    The sequence's row is locked until the transaction ends, so use a transaction of its own.
    """
    s = tables.sequence
    first = conn.execute(sa.select(s.c.next).where(s.c.name == name).with_for_update()).scalar_one()
    conn.execute(sa.update(s).where(s.c.name == name).values(next=first + count))
    return int(first)
