"""Queries for the fields that the views of a nested stack take from the stacks around it."""

import typing
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..bulk import BATCH, OneOf
from ..ids import StackId
from ..schema import tables

_S = tables.stack.c
_R = tables.resource.c
_PARENTS = (
    sa.select(_S.id, _R.name)
    .join_from(tables.stack, tables.resource, _R.id == _S.parent_resource_id)
    .where(OneOf(_S.id))
)
_NAMES = sa.select(_S.id, _S.name).where(OneOf(_S.id))
_TIMEOUT = sa.select(_S.timeout_mins).where(_S.id == sa.bindparam("root"))


def parent_resources(conn: Connection, stack_ids: Iterable[StackId]) -> dict[StackId, str]:
    """Return the name of the resource that each of the nested stacks belongs to."""
    return _pairs(conn, _PARENTS, stack_ids)


def names(conn: Connection, stack_ids: Iterable[StackId]) -> dict[StackId, str]:
    """Return the names of the stacks that exist."""
    return _pairs(conn, _NAMES, stack_ids)


def timeout_mins(conn: Connection, root_id: StackId) -> int | None:
    """Return the timeout of a root, which limits the stacks in it, too."""
    minutes: int | None = conn.execute(_TIMEOUT, {"root": root_id}).scalar()
    return minutes


def _pairs(
    conn: Connection, query: sa.Select[typing.Any], stack_ids: Iterable[StackId]
) -> dict[StackId, str]:
    pairs: dict[StackId, str] = {}
    ids = sorted(set(stack_ids))
    for start in range(0, len(ids), BATCH):
        rows = conn.execute(query, {"ids": ids[start : start + BATCH]})
        pairs.update((StackId(stack_id), name) for stack_id, name in rows)
    return pairs
