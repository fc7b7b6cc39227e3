"""What a child is to the resource that it belongs to."""

import typing
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ..db import stacks
from ..db.ids import StackId
from ..db.rows import Resource, Stack
from ..planning.requests import Goal
from ..resources.nested.children import ChildGoal
from ..resources.registry import ResourceRegistry
from ..sealing.stored import StoredLookup
from ..template.environment import as_document, nested_environment, parse_environment
from ..template.residual import evaluate

Json = typing.Any


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
