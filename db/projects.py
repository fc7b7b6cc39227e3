"""Facts about a whole project: numbers of its objects, the quotas of admins, and a lock for both."""

import typing
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .schema import tables

_S = tables.stack.c
_SNAPSHOT = tables.snapshot.c
_QUOTAS = sa.select(tables.project.c.quotas).where(tables.project.c.id == sa.bindparam("project"))
_LOCK = _QUOTAS.with_for_update()


def lock(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Keep other transactions that call this for the project waiting until this one ends.

    The lock is the project's row, which the first call stores.

    :returns: the quotas that differ from the defaults, by name.
    """
    row = conn.execute(_LOCK, {"project": project_id}).first()
    if row is None:
        conn.execute(statements.insert_or_update(conn, tables.project, {"id": project_id}, []))
        row = conn.execute(_LOCK, {"project": project_id}).one()
    return row.quotas or {}


def quotas_of(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the quotas that differ from the defaults, by name."""
    return conn.execute(_QUOTAS, {"project": project_id}).scalar() or {}


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


def count_stacks(conn: Connection, project_id: str) -> int:
    """Return how many top-level stacks of a project live."""
    return _number(conn, sa.select(sa.func.count()).where(*_roots(project_id)))


def count_resources(conn: Connection, project_id: str) -> int:
    """Return how many resources the trees of a project's stacks have: what is there, and what is to come."""
    counted = _S.tree_resources + _S.excess_resources
    return _number(conn, sa.select(sa.func.sum(counted)).where(*_roots(project_id)))


def count_snapshots(conn: Connection, project_id: str) -> int:
    """Return how many snapshots the top-level stacks of a project have."""
    return _number(conn, _of_snapshots(project_id, sa.func.count()))


def goal_bytes(conn: Connection, project_id: str) -> int:
    """Return the bytes of the goals of a project's top-level stacks, and of those that its snapshots keep."""
    stacks = sa.select(sa.func.sum(_S.goal_size)).where(*_roots(project_id))
    return _number(conn, stacks) + _number(conn, _of_snapshots(project_id, sa.func.sum(_SNAPSHOT.goal_size)))


def _roots(project_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (_S.project_id == project_id, _S.live_name.is_not(None))


def _of_snapshots(project_id: str, value: sa.ColumnElement[int]) -> sa.Select[typing.Any]:
    joined = sa.select(value).join_from(tables.snapshot, tables.stack, _SNAPSHOT.stack_id == _S.id)
    return joined.where(*_roots(project_id))


def _number(conn: Connection, query: sa.Select[typing.Any]) -> int:
    return int(conn.execute(query).scalar() or 0)
