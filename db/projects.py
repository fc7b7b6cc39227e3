"""The rows of projects: the quotas that admins have set, what projects have, and a lock for both."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements, usage
from .schema import tables

_P = tables.project.c
_GET = sa.select(*usage.COLUMNS).where(_P.id == sa.bindparam("project"))
_LOCK = _GET.with_for_update()


@dataclass(frozen=True)
class ProjectRow:
    """The row of a project.

    :ivar quotas: the quotas that differ from the defaults, by name.
    :ivar usage: how much it has, by the same names.
    """

    quotas: Mapping[str, int]
    usage: usage.Usage


def lock(conn: Connection, project_id: str) -> ProjectRow:
    """Return a project's row, which no other transaction changes or locks until this one ends.

    What this transaction has changed before is counted.  It locks nothing else later: the row is the last
    lock of every transaction, see usage.py.  The first call for a project stores its row.
    """
    row = usage.store(conn).get(project_id) or conn.execute(_LOCK, {"project": project_id}).first()
    if row is None:
        conn.execute(statements.insert_or_update(conn, tables.project, {"id": project_id}, []))
        row = conn.execute(_LOCK, {"project": project_id}).one()
    return _project(row)


def get(conn: Connection, project_id: str) -> ProjectRow:
    """Return a project's row; one without a row has nothing, and the defaults."""
    row = conn.execute(_GET, {"project": project_id}).first()
    return ProjectRow({}, dict.fromkeys(usage.COUNTERS, 0)) if row is None else _project(row)


def _project(row: sa.Row[typing.Any]) -> ProjectRow:
    return ProjectRow(row.quotas or {}, {name: getattr(row, name) for name in usage.COUNTERS})


def list_quotas(conn: Connection, after: str, limit: int | None) -> list[tuple[str, Mapping[str, int]]]:
    """Return the projects for which an admin has set quotas, by id, each with those quotas.

    :param after: the id behind which the list begins; "": at the first.
    :param limit: the most projects to return; None: all.
    """
    p = tables.project.c
    query = sa.select(p.id, p.quotas).where(p.quotas.is_not(None), p.id > after).order_by(p.id).limit(limit)
    return [(row.id, row.quotas) for row in conn.execute(query)]


def set_quotas(conn: Connection, project_id: str, quotas: Mapping[str, int]) -> None:
    """Store the quotas that differ from the defaults, in place of those before; the caller has the lock."""
    p = tables.project
    conn.execute(sa.update(p).where(p.c.id == project_id).values(quotas=dict(quotas) or None))
