"""The resource that a nested stack belongs to, and the ids that follow from its key."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import stacks
from ..db.ids import ResourceId, SnapshotId, StackId
from ..db.rows import Resource, Stack
from ..resources.registry import ResourceRegistry
from ..shapes import JsonMap

Guard = Callable[[Connection], None]
"""Raises an error in a transaction whose step may not act any more."""
NAMESPACE = uuid.UUID("6f0b5a1e-9d5c-4c7e-8a30-1f2f5b6c7d88")


@dataclass(frozen=True)
class ParentResource:
    """The resource that a child belongs to.

    :ivar resource_type: type of the resource, as its template declares it.
    :ivar key: the resource's key, from which the child's id follows.
    :ivar facade: the parts of the resource's definition that the child's template may read, as residuals.
    :ivar guard: function that checks in each transaction that the step may still act.
    """

    stack_id: StackId
    resource_id: ResourceId
    resource_name: str
    resource_type: str
    child_name: str
    key: str
    facade: JsonMap
    guard: Guard


def child_snapshot_id(key: str) -> SnapshotId:
    """Return the id of the snapshot of its child that a resource takes with this key."""
    return SnapshotId(str(uuid.uuid5(NAMESPACE, f"snapshot {key}")))


def child_id(key: str) -> StackId:
    """Return the id of the child that a resource with this key has."""
    return StackId(str(uuid.uuid5(NAMESPACE, key)))


def living_child(conn: Connection, row: Resource, registry: ResourceRegistry) -> Stack | None:
    """Return the stack that a resource is; None: its type has none, or the stack does not exist."""
    return stacks.of_resource(conn, row.stack_id, row.id) if registry.is_nested(row.plugin) else None
