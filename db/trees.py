"""Stacks nested in stacks."""

import typing
from collections.abc import Sequence

import sqlalchemy as sa

from . import tables
from .ids import StackId


def below(stack_id: StackId, deepest: int | None = None) -> sa.Select[typing.Any]:
    """Selects the ids of a stack and of all stacks nested in it: not of its parents' other children.

    :param deepest: depth, counted from the root, of the last level wanted; None: all.
    """
    s = tables.stack
    tree = sa.select(s.c.id).where(s.c.id == stack_id).cte("tree", recursive=True)
    children = sa.select(s.c.id).where(s.c.parent_id == tree.c.id)
    if deepest is not None:
        children = children.where(s.c.depth <= deepest)
    return sa.select(tree.union_all(children).c.id)


def inside(stack_ids: Sequence[StackId]) -> sa.Select[typing.Any]:
    """Selects the ids of all stacks nested in any of these, on all levels; not of what steps left behind."""
    s = tables.stack
    child = s.c.parent_resource_id.is_not(None)
    tree = sa.select(s.c.id).where(s.c.parent_id.in_(sorted(stack_ids)), child).cte("tree", recursive=True)
    below_them = sa.select(s.c.id).where(s.c.parent_id == tree.c.id, child)
    return sa.select(tree.union_all(below_them).c.id)
