"""Queries on trees of nested stacks."""

import typing
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .ids import StackId
from .schema import tables

LEVELS = 50
"""Levels that are read at most: more than any tree has."""


def below(stack_id: StackId, deepest: int | None = None) -> sa.Select[typing.Any]:
    """Return a query for the ids of a stack and of all stacks nested in it.

    :param deepest: depth, counted from the root, of the last level to read; None: all.
    """
    s = tables.stack
    tree = sa.select(s.c.id).where(s.c.id == stack_id).cte("tree", recursive=True)
    children = sa.select(s.c.id).where(s.c.parent_id == tree.c.id)
    if deepest is not None:
        children = children.where(s.c.depth <= deepest)
    return sa.select(tree.union_all(children).c.id)


def inside(stack_ids: Sequence[StackId]) -> sa.Select[typing.Any]:
    """Return a query for the ids of the stacks nested in these, without those of orphaned creates."""
    s = tables.stack
    child = s.c.parent_resource_id.is_not(None)
    tree = sa.select(s.c.id).where(s.c.parent_id.in_(sorted(stack_ids)), child).cte("tree", recursive=True)
    below_them = sa.select(s.c.id).where(s.c.parent_id == tree.c.id, child)
    return sa.select(tree.union_all(below_them).c.id)


def paths(conn: Connection, root: StackId, stack_ids: Iterable[str]) -> dict[str, str]:
    """Return the path to each of the stacks, which are nested in the root: ``NAME/NAME/``.

    It reads one statement for each level.
    """
    s, r = tables.stack, tables.resource
    above: dict[str, tuple[str | None, str]] = {root: (None, "")}
    wanted = set(stack_ids) - {root}
    for _ in range(LEVELS):
        if not wanted:
            break
        rows = conn.execute(
            sa.select(s.c.id, s.c.parent_id, s.c.name.label("stack"), r.c.name)
            .outerjoin(r, r.c.id == s.c.parent_resource_id)
            .where(s.c.id.in_(sorted(wanted)))
        ).all()
        above.update({row.id: (row.parent_id, row.name or row.stack) for row in rows})
        wanted = {row.parent_id for row in rows if row.parent_id is not None} - above.keys()
    return {stack_id: _path(above, stack_id) for stack_id in above}


def _path(above: Mapping[str, tuple[str | None, str]], stack_id: str) -> str:
    parent, name = above[stack_id]
    if not name:
        return ""
    return f"{_path(above, parent) if parent is not None and parent in above else ''}{name}/"
