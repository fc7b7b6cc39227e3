"""Exporting a stack as a document that any installation can adopt, and abandoning a stack."""

from collections.abc import Mapping, Sequence

from sqlalchemy.engine import Connection

from ..db import content, resources, stacks
from ..db.ids import ContentId, StackId
from ..db.rows import Resource, Snapshot, Stack
from ..db.states import Status
from ..sealing.stored import InClear, Masked
from ..shapes import Json
from ..template.budget import json_size
from .actions import start_delete
from .context import EngineContext, Started, announce_started
from .errors import ActionInProgress
from .parent_resource import living_child
from .start import running_of
from .tree_budget import TreeBudget

Shown = InClear | Masked
"""A way to show stored values: opened, or masked."""


def abandon_stack(context: EngineContext, stack: Stack) -> dict[str, Json]:
    """Delete a stack but keep the resources that it has created; return its document.

    Its snapshots, which the document does not contain, are deleted as with every stack.

    :raises ActionInProgress: an action is in progress: the document would miss the resources it creates.
    :raises LimitExceeded: the tree of stacks is too large for a document; it stays as it is.
    """
    timeout = context.timeout(stack.timeout_mins)
    document, started = context.database.write(lambda conn: _abandon(context, conn, stack.id, timeout))
    for each in started:
        announce_started(context.hints, each)
    return document


def _abandon(
    context: EngineContext, conn: Connection, stack_id: StackId, timeout: float
) -> tuple[dict[str, Json], list[Started]]:
    stack = stacks.lock(conn, stack_id)
    tree = [stack, *(stacks.lock(conn, key) for key in stacks.ids_inside(conn, [stack_id]))]
    for each in tree:
        if each.status == Status.IN_PROGRESS or running_of(conn, each):
            raise ActionInProgress(each.name, each.action)
    document = export_stack(context, conn, stack)
    started = []
    for each in tree:
        resources.delete_many(conn, [row.id for row in resources.of_stack(conn, each.id)])
        started.append(start_delete(conn, context.scope(each.id), timeout=timeout))
    return document, [each for each in started if each is not None]


def export_stack(context: EngineContext, conn: Connection, stack: Stack) -> dict[str, Json]:
    """Return Heat's document of a stack, as `adopt` takes it: with its secrets in clear.

    :raises LimitExceeded: the tree of stacks is too large for a document.
    """
    return _Document(conn, context).of_stack(stack)


class _Document:
    """Writes the document of one tree of stacks."""

    def __init__(self, conn: Connection, context: EngineContext) -> None:
        self._conn = conn
        self._context = context
        self._budget = TreeBudget(context.settings.tree)
        self._contents: dict[ContentId, tuple[Json, int]] = {}

    def of_stack(self, stack: Stack) -> dict[str, Json]:
        """Return the part of a stack, with those of the stacks nested in it."""
        clear = InClear(self._context.sealer_of(stack).open)
        with self._budget.level():
            keys = (stack.template_id, stack.environment_id, stack.files_id)
            bodies = self._bodies(keys)
            rows = [row for row in resources.of_stack(self._conn, stack.id) if row.replaced_by is None]
            self._budget.take_rows(rows)
            return {
                **_goal(bodies, stack.parameters, clear),
                **_identity(stack),
                "action": stack.action,
                "status": stack.status,
                "tags": list(stack.tags) or None,
                "resources": {row.name: self._entry(row, clear) for row in rows},
            }

    def _entry(self, row: Resource, clear: Shown) -> dict[str, Json]:
        entry = _resource(row, clear)
        child = living_child(self._conn, row, self._context.registry)
        return entry if child is None else {**entry, **self.of_stack(child)}

    def _bodies(self, keys: Sequence[ContentId]) -> list[Json]:
        """Return contents; each counts as often as it is written, for equal ones of nested stacks repeat."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._contents]
        if missing:
            bodies = content.get_all(self._conn, missing)
            self._contents.update({key: (bodies[key], json_size(bodies[key])) for key in missing})
        for key in keys:
            self._budget.take_bytes(self._contents[key][1])
        return [self._contents[key][0] for key in keys]


def snapshot_document(
    stack: Stack,
    snapshot: Snapshot,
    contents: Mapping[ContentId, Json],
    copies: Sequence[Resource],
    clear: Shown,
) -> dict[str, Json]:
    """Return Heat's document of a stack as it was when the snapshot was taken.

    :param contents: contents of the snapshot, by id.
    :param copies: the snapshot's copies of the resources.
    """
    bodies = [contents[key] for key in snapshot.contents]
    return {
        **_goal(bodies, snapshot.goal["parameters"], clear),
        **_identity(stack),
        "action": "SNAPSHOT",
        "status": snapshot.status,
        "tags": list(snapshot.tags) or None,
        "resources": {row.name: _resource(row, clear) for row in copies if row.status == Status.COMPLETE},
    }


def _identity(stack: Stack) -> dict[str, Json]:
    return {
        "name": stack.name,
        "id": stack.id,
        "project_id": stack.project_id,
        "stack_user_project_id": stack.project_id,
    }


def _goal(bodies: Sequence[Json], parameters: Json, clear: Shown) -> dict[str, Json]:
    template, environment, files = bodies
    values = {**clear.residual(environment.get("parameters") or {}), **clear.residual(parameters)}
    return {
        "template": template,
        "environment": {**clear.residual(environment), "parameters": values},
        "files": files,
    }


def _resource(row: Resource, clear: Shown) -> dict[str, Json]:
    return {
        "name": row.name,
        "resource_id": row.physical_id,
        "type": row.type,
        "action": row.action,
        "status": row.status,
        "metadata": clear.metadata(row),
        "resource_data": clear.data(row),
    }
