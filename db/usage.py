"""How much each project has of what quotas limit: counters in the project's row.

A request checks a quota by that row, so its cost does not follow what the project has already.  All
statements that write or remove what is counted are executed by `write`, which notes the difference for the
transaction's end; tests/harness/counted_rows.py watches that none is executed elsewhere.  The differences are
stored by one statement for each project, as the last step of the transaction, or with the first check of a
quota.  For the project's row is the last lock of every transaction: so a commit of many results has it for a
moment only, and no two transactions wait for each other in a circle.

What counts are the living top-level stacks of a project, each with its whole tree, their snapshots, and all
software configs and deployments of the project.
"""

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import statements
from .bulk import Write
from .rows import Stack
from .schema import tables

COUNTERS = tuple(column.name for column in tables.project.c if isinstance(column.type, sa.BigInteger))
"""Names of the counters, which are those of the quotas."""
Usage = Mapping[str, int]
"""How much a project has, by the counter's name."""
Changes = dict[str, dict[str, int]]
"""Changes of a transaction, by project and counter."""
NOTED = "stoker_usage"
"""The execution option of a connection that holds the changes of its transaction, for `store` at its end."""

_P = tables.project
_ID: sa.BindParameter[str] = sa.bindparam("project", type_=sa.String)
_ADD = (
    sa.update(_P)
    .where(_P.c.id == _ID)
    .values({name: _P.c[name] + sa.bindparam(f"more_{name}", type_=sa.BigInteger) for name in COUNTERS})
)

COLUMNS = (_P.c.quotas, *(_P.c[name] for name in COUNTERS))
"""Columns of the quotas that a project has of its own, and of its counters."""
_ADD_RETURNING = _ADD.returning(*COLUMNS)


class UsageChange(typing.NamedTuple):
    """A change of what a project has.

    :ivar more: by the counter's name, negative for what is removed.
    """

    project_id: str
    more: Usage


def write(conn: Connection, statement: Write, differences: Iterable[UsageChange]) -> int:
    """Execute a statement that writes or removes what is counted; return the number of its rows.

    :param differences: they count where the statement has changed a row.
    """
    rows = conn.execute(*statement).rowcount
    if rows:
        for difference in differences:
            _note(conn, *difference)
    return rows


def of_stacks(stacks: Sequence[Stack], sign: int = 1) -> list[UsageChange]:
    """Return the differences where stacks begin to live, or end: of those of them that count.

    :param stacks: as their rows are stored, or were before the end.
    :param sign: 1, or -1 at the end.
    """
    return [
        UsageChange(
            stack.project_id,
            {
                "stacks": sign,
                "resources": sign * (stack.tree_resources + stack.excess_resources),
                "goal_bytes": sign * stack.goal_size,
            },
        )
        for stack in stacks
        if stack.live_name is not None
    ]


def _note(conn: Connection, project_id: str, more: Usage) -> None:
    """Note a difference for the transaction's end; on a connection that does not note, store it at once."""
    noted: Changes | None = conn.get_execution_options().get(NOTED)
    if noted is None:
        _store(conn, project_id, more)
        return
    differences = noted.setdefault(project_id, dict.fromkeys(COUNTERS, 0))
    for name, number in more.items():
        differences[name] += number


def store(conn: Connection) -> dict[str, sa.Row[typing.Any]]:
    """Store what was noted; the rows of the projects stay locked until the transaction ends.

    :returns: those rows as they are then, by project, as far as the database returns what it changes.
    """
    noted: Changes = conn.get_execution_options().get(NOTED) or {}
    stored = {project_id: _store(conn, project_id, noted.pop(project_id)) for project_id in sorted(noted)}
    return {project_id: row for project_id, row in stored.items() if row is not None}


def _store(conn: Connection, project_id: str, more: Mapping[str, int]) -> sa.Row[typing.Any] | None:
    if not any(more.values()):
        return None
    values = {"project": project_id, **{f"more_{name}": more.get(name, 0) for name in COUNTERS}}
    if conn.dialect.update_returning:  # MariaDB does not.
        row = conn.execute(_ADD_RETURNING, values).first()
        if row is None:  # The project's first thing.
            conn.execute(statements.insert_or_update(conn, _P, {"id": project_id}, []))
            row = conn.execute(_ADD_RETURNING, values).one()
        return row
    if conn.execute(_ADD, values).rowcount == 0:
        conn.execute(statements.insert_or_update(conn, _P, {"id": project_id}, []))
        conn.execute(_ADD, values)
    return None


# -- the sums, which the counters replace ----------------------------------------------------------


def _sums() -> sa.Select[typing.Any]:
    s = tables.stack.c
    n = tables.snapshot
    c = tables.software_config
    d = tables.software_deployment
    roots = (s.project_id == _ID, s.live_name.is_not(None))
    of_roots = sa.join(n, tables.stack, n.c.stack_id == s.id)
    of_stacks = sa.select(sa.func.sum(s.goal_size)).where(*roots)
    of_snapshots = sa.select(sa.func.sum(n.c.goal_size)).select_from(of_roots).where(*roots)
    of_configs = sa.select(sa.func.sum(c.c.size)).where(c.c.project_id == _ID)
    values = d.c.input_size + d.c.output_size
    of_deployments = sa.select(sa.func.sum(values)).where(d.c.project_id == _ID)
    counted = sa.select(sa.func.count())
    sums = {
        "stacks": counted.select_from(tables.stack).where(*roots),
        "resources": sa.select(sa.func.sum(s.tree_resources + s.excess_resources)).where(*roots),
        "snapshots": counted.select_from(of_roots).where(*roots),
        "goal_bytes": (of_stacks, of_snapshots),
        "software_configs": counted.select_from(c).where(c.c.project_id == _ID),
        "software_deployments": counted.select_from(d).where(d.c.project_id == _ID),
        "software_bytes": (of_configs, of_deployments),
    }
    return sa.select(*(_sum(queries).label(name) for name, queries in sums.items()))


def _sum(queries: typing.Any) -> sa.ColumnElement[typing.Any]:
    first, *more = queries if isinstance(queries, tuple) else (queries,)
    total: sa.ColumnElement[typing.Any] = sa.func.coalesce(first.scalar_subquery(), 0)
    for query in more:
        total = total + sa.func.coalesce(query.scalar_subquery(), 0)
    return total


_SUMS = _sums()


def summed(conn: Connection, project_id: str) -> Usage:
    """Return how much a project has, counted again from all its rows: for operators and tests only."""
    row = conn.execute(_SUMS, {"project": project_id}).one()
    return {name: int(getattr(row, name)) for name in COUNTERS}


@dataclass(frozen=True)
class Recount:
    """A counter that was wrong.

    :ivar stored: its value before.
    :ivar counted: the right one.
    """

    project_id: str
    counter: str
    stored: int
    counted: int


def differences(conn: Connection, project_id: str) -> list[Recount]:
    """Lock a project's row, and return its counters that differ from the sums.

    It is exact beside running daemons.  Who changes what is counted has the row's lock before its commit: it
    has committed before, and all its rows are in the sums, or it adds its difference later.
    """
    conn.execute(statements.insert_or_update(conn, _P, {"id": project_id}, []))
    columns = [_P.c[name] for name in COUNTERS]
    row = conn.execute(sa.select(*columns).where(_P.c.id == project_id).with_for_update()).one()
    stored = dict(zip(COUNTERS, row, strict=True))
    counted = summed(conn, project_id)
    return [
        Recount(project_id, name, stored[name], counted[name])
        for name in COUNTERS
        if stored[name] != counted[name]
    ]


def recount(conn: Connection, project_id: str) -> list[Recount]:
    """Set a project's counters by the sums; return those that were wrong, see `differences`."""
    wrong = differences(conn, project_id)
    if wrong:
        right = {each.counter: each.counted for each in wrong}
        conn.execute(sa.update(_P).where(_P.c.id == project_id).values(**right))
    return wrong


def projects(conn: Connection, after: str = "", *, limit: int) -> list[str]:
    """Return the ids of the projects that have something, or a row, in their order.

    :param after: the id behind which the page begins.
    """
    pages = (
        sa.select(owner.label("id")).where(owner > after).distinct().order_by(owner).limit(limit).subquery()
        for owner in _OWNERS
    )
    ids = sa.union(*(sa.select(page.c.id) for page in pages)).subquery()
    return list(conn.execute(sa.select(ids.c.id).order_by(ids.c.id).limit(limit)).scalars())


def has_any(conn: Connection, project_id: str) -> bool:
    """Return whether a project has something, or a row."""
    exist = (sa.exists().where(owner == project_id) for owner in _OWNERS)
    return bool(conn.execute(sa.select(sa.or_(*exist))).scalar())


_OWNERS = (
    *(_P.c.id, tables.stack.c.project_id),
    *(tables.software_config.c.project_id, tables.software_deployment.c.project_id),
)
