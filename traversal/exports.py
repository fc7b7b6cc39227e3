"""A stack as a document that another installation, or this one, can adopt; and abandoning a stack."""

import functools
import typing
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy.engine import Connection

from ..db import content, resources, stacks
from ..db.ids import ContentId
from ..db.resources import Resource
from ..db.snapshots import Snapshot
from ..db.stacks import Stack
from ..db.states import Status
from ..template.residual import evaluate
from .desk import Desk
from .planning import Scope, TooFewIds, ids_needed
from .signals import ActionInProgress
from .start import Begun, running_of, start_delete, tell
from .stored import StoredLookup

Json = typing.Any
Shown = Callable[[Json], Json]
"""What becomes of stored values: opened, or masked."""


class Exports:
    """Exports and abandons stacks.  Thread-safe."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def export(self, stack: Stack) -> dict[str, Json]:
        """Heat's document of a stack, as `adopt` takes it: with its secrets in clear."""
        return self._desk.database.read(lambda conn: self._document(conn, stack))

    def abandon(self, stack: Stack) -> dict[str, Json]:
        """Delete a stack, but leave alone all that it has made; its document.  Its snapshots, of which the
        document says nothing, are deleted as with every stack.

        :raises ActionInProgress: something is going on: what it will make could not be in the document.
        """
        timeout = self._desk.timeout(stack.timeout_mins)
        while True:
            copies = self._desk.database.read(lambda conn: resources.copies(conn, stack.id))
            scope = self._desk.scope(stack.id, ids_needed(len(copies)))
            try:
                document, begun = self._desk.database.write(
                    functools.partial(self._abandon, scope=scope, timeout=timeout)
                )
            except TooFewIds:
                continue
            if begun is not None:
                tell(self._desk.hints, begun)
            return document

    def _abandon(
        self, conn: Connection, scope: Scope, timeout: float
    ) -> tuple[dict[str, Json], Begun | None]:
        stack = stacks.lock(conn, scope.stack_id)
        if stack.status == Status.IN_PROGRESS or running_of(conn, stack):
            raise ActionInProgress(stack.name, stack.action)
        document = self._document(conn, stack)
        resources.delete_many(conn, [row.id for row in resources.of_stack(conn, stack.id)])
        return document, start_delete(conn, scope, timeout=timeout)

    def _document(self, conn: Connection, stack: Stack) -> dict[str, Json]:
        lookup = StoredLookup(self._desk.sealer.open)
        keys = (stack.template_id, stack.environment_id, stack.files_id)
        found = content.get_many(conn, keys)
        rows = [row for row in resources.of_stack(conn, stack.id) if row.replaced_by is None]
        return {
            **_goal([found[key] for key in keys], stack.parameters, lambda value: evaluate(value, lookup)),
            **_identity(stack),
            "action": stack.action,
            "status": stack.status,
            "tags": list(stack.tags) or None,
            "resources": {row.name: _resource(row, lambda value: evaluate(value, lookup)) for row in rows},
        }


def snapshot_document(
    stack: Stack,
    snapshot: Snapshot,
    contents: Mapping[ContentId, Json],
    copies: Sequence[Resource],
    shown: Shown,
) -> dict[str, Json]:
    """Heat's document of a stack as it was when the snapshot was taken.

    :param contents: those of the snapshot.
    :param copies: what it keeps of the resources.
    """
    bodies = [contents[key] for key in snapshot.contents]
    return {
        **_goal(bodies, snapshot.goal["parameters"], shown),
        **_identity(stack),
        "action": "SNAPSHOT",
        "status": snapshot.status,
        "tags": list(snapshot.tags) or None,
        "resources": {row.name: _resource(row, shown) for row in copies if row.status == Status.COMPLETE},
    }


def _identity(stack: Stack) -> dict[str, Json]:
    return {
        "name": stack.name,
        "id": stack.id,
        "project_id": stack.tenant,
        "stack_user_project_id": stack.tenant,
    }


def _goal(bodies: Sequence[Json], parameters: Json, shown: Shown) -> dict[str, Json]:
    template, environment, files = bodies
    values = {**shown(environment["parameters"]), **shown(parameters)}
    return {
        "template": template,
        "environment": {**shown(environment), "parameters": values},
        "files": files,
    }


def _resource(row: Resource, shown: Shown) -> dict[str, Json]:
    return {
        "name": row.name,
        "resource_id": row.physical_id,
        "type": row.type,
        "action": row.action,
        "status": row.status,
        "metadata": shown(row.metadata or {}),
        "resource_data": shown(row.data or {}),
    }
