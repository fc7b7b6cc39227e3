"""Facts about all stacks of a project: how many live, and a lock for what depends on that number."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .schema import tables


def lock(conn: Connection, project_id: str) -> None:
    """Keep other transactions that call this for the project waiting until this one ends.

    The lock is the project's row, which the first call stores.
    """
    p = tables.project
    conn.execute(statements.insert_or_update(conn, p, {"id": project_id}, []))
    conn.execute(sa.select(p.c.id).where(p.c.id == project_id).with_for_update())


def count_stacks(conn: Connection, project_id: str) -> int:
    """Return how many top-level stacks of a project live."""
    s = tables.stack
    living = sa.select(sa.func.count()).where(s.c.project_id == project_id, s.c.live_name.is_not(None))
    return int(conn.execute(living).scalar_one())
