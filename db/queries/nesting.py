"""Queries for the fields that the views of a nested stack take from the stacks around it."""

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...shapes import Json
from .. import statements
from ..bulk import BATCH, OneOf
from ..ids import ResourceId, StackId
from ..schema import tables

_S = tables.stack.c
_R = tables.resource.c
_PARENTS = (
    sa.select(_S.id, _R.name)
    .join_from(tables.stack, tables.resource, _R.id == _S.parent_resource_id)
    .where(OneOf(_S.id))
)
_CHILDREN = sa.select(_S.parent_resource_id, _S.id, _S.name).where(
    OneOf(_S.parent_id), OneOf(_S.parent_resource_id, "resources"), _S.deleted_at.is_(None)
)
_TIMEOUT = sa.select(_S.timeout_mins).where(_S.id == sa.bindparam("root"))


def parent_resources(conn: Connection, stack_ids: Iterable[StackId]) -> dict[StackId, str]:
    """Return the name of the resource that each of the nested stacks belongs to."""
    pairs: dict[StackId, str] = {}
    ids = sorted(set(stack_ids))
    for start in range(0, len(ids), BATCH):
        rows = conn.execute(_PARENTS, {"ids": ids[start : start + BATCH]})
        pairs.update((StackId(stack_id), name) for stack_id, name in rows)
    return pairs


def children(
    conn: Connection, stack_ids: Iterable[StackId], resource_ids: Iterable[ResourceId]
) -> dict[ResourceId, tuple[StackId, str]]:
    """Return id and name of the nested stacks that resources have, by the resources' ids.

    They are found as `stacks.of_resource` finds one.

    :param stack_ids: the stacks of the resources.
    """
    nested: dict[ResourceId, tuple[StackId, str]] = {}
    parents = sorted(set(stack_ids))
    ids = sorted(set(resource_ids))
    for start in range(0, len(ids), BATCH):
        rows = conn.execute(_CHILDREN, {"ids": parents, "resources": ids[start : start + BATCH]})
        nested.update((ResourceId(owner), (StackId(key), name)) for owner, key, name in rows)
    return nested


def data_by_path(
    conn: Connection, stack_id: StackId, plugins: Collection[str]
) -> dict[tuple[str, ...], tuple[str, Json]]:
    """Return types and data of the resources of some types in a stack and those nested in it.

    :returns: by the names of the resources from the stack down to each one.
    """
    is_member = sa.and_(_R.stack_id.in_(statements.below(stack_id)), _R.plugin.in_(sorted(plugins)))
    query = sa.select(_R.stack_id, _R.name, _R.plugin, _R.data).where(
        is_member, _R.replaced_by.is_(None), _R.snapshot_id.is_(None)
    )
    # Of a nested stack that is being replaced, the newer one counts.
    rows = conn.execute(query.order_by(_R.id)).all()
    above = statements.paths(conn, stack_id, {row.stack_id for row in rows})
    return {(*above[row.stack_id].split("/")[:-1], row.name): (row.plugin, row.data) for row in rows}


def things(conn: Connection, stack_ids: Sequence[StackId]) -> list[tuple[str, str]]:
    """Return the types and physical ids of the things of some stacks and of those nested in them."""
    is_member = _R.stack_id.in_(statements.all_below(stack_ids))
    query = sa.select(_R.plugin, _R.physical_id).where(
        is_member, _R.physical_id.is_not(None), _R.snapshot_id.is_(None)
    )
    return [(row.plugin, row.physical_id) for row in conn.execute(query)]


def timeout_mins(conn: Connection, root_id: StackId) -> int | None:
    """Return the timeout of a root, which limits the stacks in it, too."""
    minutes: int | None = conn.execute(_TIMEOUT, {"root": root_id}).scalar()
    return minutes
