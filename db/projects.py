"""Facts about all stacks of a project: how many live, and a lock for what depends on that number."""

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .schema import tables


def lock(conn: Connection, project_id: str) -> None:
    """Keep other transactions that call this for the project waiting until this one ends.

    The lock is a row of the table of sequences: no other table has one for each project.  Its name has only
    32 characters, so it is a digest; two projects of one digest would wait for each other, no more.
    """
    s = tables.sequence
    name = hashlib.sha256(project_id.encode()).hexdigest()[:32]
    conn.execute(statements.insert_or_update(conn, s, {"name": name, "next": 0}, []))
    conn.execute(sa.select(s.c.next).where(s.c.name == name).with_for_update())


def count_stacks(conn: Connection, project_id: str) -> int:
    """Return how many top-level stacks of a project live."""
    s = tables.stack
    living = sa.select(sa.func.count()).where(s.c.project_id == project_id, s.c.live_name.is_not(None))
    return int(conn.execute(living).scalar_one())
