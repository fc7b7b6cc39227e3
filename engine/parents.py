"""What a child is to the resource that it belongs to."""

import typing
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import stacks
from ..db.ids import ResourceId, SnapshotId, StackId
from ..db.rows import Resource, Stack
from ..planning.requests import Goal
from ..resources.nested.children import ChildGoal
from ..resources.registry import ResourceRegistry
from ..sealing.stored import StoredLookup
from ..template.environment import as_document, nested_environment, parse_environment
from ..template.residual import evaluate

Json = typing.Any
Guard = Callable[[Connection], None]
"""Raises in a transaction whose step may not act any more."""
NAMESPACE = uuid.UUID("6f0b5a1e-9d5c-4c7e-8a30-1f2f5b6c7d88")


@dataclass(frozen=True)
class ParentResource:
    """The resource that a child belongs to.

    :ivar key: the child's id follows from it.
    :ivar facade: what the child's template may ask of the resource's definition, as residuals.
    :ivar guard: sees in each transaction that the step may still act.
    """

    stack_id: StackId
    resource_id: ResourceId
    resource_name: str
    child_name: str
    key: str
    facade: Mapping[str, Json]
    guard: Guard


def child_snapshot_id(key: str) -> SnapshotId:
    """Of the snapshot of its child that a resource takes with this key."""
    return SnapshotId(str(uuid.uuid5(NAMESPACE, f"snapshot {key}")))


def child_id(key: str) -> StackId:
    """Of the child that a resource with this key has."""
    return StackId(str(uuid.uuid5(NAMESPACE, key)))


def living_child(conn: Connection, row: Resource, catalogue: ResourceRegistry) -> Stack | None:
    """The stack that a resource is; None: its type has none, or it is not there."""
    if row.physical_id is None or not catalogue.is_nested(row.plugin):
        return None
    return stacks.living(conn, StackId(row.physical_id))


def compiled_from(
    goal: ChildGoal,
    name: str,
    facade: Mapping[str, Json],
    *,
    environment: Mapping[str, Json],
    files: Mapping[str, str],
    unseal: Callable[[str], Json],
) -> Goal:
    """What the child of a resource is compiled from.

    :param name: of the resource.
    :param environment, files: of the stack around it; the environment as it is stored.
    :param unseal: opens the token of a secret.
    """
    document = evaluate(environment, StoredLookup(unseal))
    return Goal(
        template=goal.template,
        environment=as_document(nested_environment(parse_environment(document), name)),
        files=files,
        parameters=goal.parameters,
        facade=facade,
        generated=goal.generated,
        secret=goal.secret,
    )
