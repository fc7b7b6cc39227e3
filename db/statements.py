"""Statements that several modules share: upserts in each dialect, trees of nested stacks."""

import functools
import importlib
import typing
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .ids import StackId
from .schema import tables


@functools.cache
def dialect_module(name: str) -> typing.Any:
    """Return SQLAlchemy's module of the dialect of a connection.

    The engine has loaded that one.  The others, with all of their drivers, take megabytes of each process.
    """
    return importlib.import_module(f"sqlalchemy.dialects.{'mysql' if name == 'mariadb' else name}")


def insert_or_update(
    conn: Connection, table: sa.Table, row: Mapping[str, typing.Any], changed: Sequence[str]
) -> sa.Insert:
    """Return an insert of the row that, where its primary key exists, sets the `changed` columns instead.

    :param changed: names of columns; empty: an existing row stays as it is.
    """
    dialect = conn.dialect.name
    keys = [column.name for column in table.primary_key]
    values = {name: row[name] for name in changed}
    insert: typing.Any = dialect_module(dialect).insert(table).values(dict(row))
    if dialect in ("mysql", "mariadb"):
        statement = insert.on_duplicate_key_update(values or {keys[0]: row[keys[0]]})
    elif values:
        statement = insert.on_conflict_do_update(index_elements=keys, set_=values)
    else:
        statement = insert.on_conflict_do_nothing(index_elements=keys)
    return typing.cast(sa.Insert, statement)


LEVELS = 50
"""Levels that are read at most: more than any tree has."""


def below(stack_id: StackId, deepest: int | None = None) -> sa.Select[typing.Any]:
    """Return a query for the ids of a stack and of all stacks nested in it.

    UNION takes each id once, so that a circle of damaged rows ends.

    :param deepest: depth, counted from the root, of the last level to read; None: all.
    """
    s = tables.stack.c
    return _levels(s.id == stack_id, *([] if deepest is None else [s.depth <= deepest]))


def all_below(stack_ids: Sequence[StackId]) -> sa.Select[typing.Any]:
    """Return a query for the ids of some stacks and of all stacks nested in them."""
    return _levels(tables.stack.c.id.in_(sorted(stack_ids)))


def inside(stack_ids: Sequence[StackId]) -> sa.Select[typing.Any]:
    """Return a query for the ids of the stacks nested in these, without those of orphaned creates.

    It ends as that of `below`.
    """
    s = tables.stack.c
    child = s.parent_resource_id.is_not(None)
    return _levels(sa.and_(s.parent_id.in_(sorted(stack_ids)), child), child)


def _levels(first: sa.ColumnElement[bool], *further: sa.ColumnElement[bool]) -> sa.Select[typing.Any]:
    """Return a query for the ids of stacks, and of those nested in them.

    :param first: the condition of the first level.
    :param further: the conditions of the levels below it.
    """
    s = tables.stack.c
    tree = sa.select(s.id).where(first).cte("tree", recursive=True)
    children = sa.select(s.id).where(s.parent_id == tree.c.id, *further)
    return sa.select(tree.union(children).c.id)


def paths(conn: Connection, root: StackId, stack_ids: Iterable[str]) -> dict[str, str]:
    """Return the path to each of the stacks, which are nested in the root: ``NAME/NAME/``.

    It reads one statement for each level.
    """
    s = tables.stack
    r = tables.resource
    above: dict[str, tuple[str | None, str]] = {root: (None, "")}
    ids = set(stack_ids) - {root}
    for _ in range(LEVELS):
        if not ids:
            break
        rows = conn.execute(
            sa.select(s.c.id, s.c.parent_id, s.c.name.label("stack"), r.c.name)
            .outerjoin(r, r.c.id == s.c.parent_resource_id)
            .where(s.c.id.in_(sorted(ids)))
        ).all()
        above.update({row.id: (row.parent_id, row.name or row.stack) for row in rows})
        ids = {row.parent_id for row in rows if row.parent_id is not None} - above.keys()
    return {stack_id: _path(above, stack_id) for stack_id in above}


def _path(above: Mapping[str, tuple[str | None, str]], stack_id: str) -> str:
    names: list[str] = []
    parent: str | None = stack_id
    while parent is not None and parent in above and len(names) < LEVELS:
        parent, name = above[parent]
        if not name:
            break
        names.insert(0, f"{name}/")
    return "".join(names)
