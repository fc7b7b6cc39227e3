"""Snapshots of Heat's as rows of Stoker's: the goal of that time, and a copy of each resource."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....db.ids import ContentId, ResourceId, SnapshotId, StackId, TraversalId
from ....db.rows import Resource, Snapshot
from ....engine.context import EngineContext
from ....engine.planning.goal import sealed_values, stored_environment
from ....sealing.sealer import BoundSealer
from ....shapes import Json
from ....template.environment import parse_environment
from ..heat.rows import HeatSnapshot, HeatStack, document_of
from ..mapping.columns import SNAPSHOT
from ..mapping.data import copies_of
from .built import BuiltStack


@dataclass(frozen=True)
class SnapshotRows:
    """A snapshot with the copies of resources that it keeps."""

    snapshot: Snapshot
    copies: Sequence[Resource] = ()


def snapshot_rows(
    stack: HeatStack,
    built: BuiltStack,
    put: Callable[[Json], ContentId],
    sealer: BoundSealer,
    context: EngineContext,
) -> tuple[list[SnapshotRows], list[str]]:
    """Return the snapshots of a stack, and notes about those that cannot be moved.

    :param put: notes a content to be stored, and returns its id.
    """
    snapshots: list[SnapshotRows] = []
    notes: list[str] = []
    for snapshot in stack.snapshots:
        label = f"snapshot {snapshot.name or snapshot.id}"
        if built.children:
            notes.append(f"{label} of a stack with nested ones stays in Heat: take a new one after the move")
        elif snapshot.status == "IN_PROGRESS" or snapshot.data is None:
            notes.append(f"{label} was never completed, and stays in Heat")
        else:
            snapshots.append(_rows(snapshot, built, put, sealer, context))
    return snapshots, notes


def _rows(
    snapshot: HeatSnapshot,
    built: BuiltStack,
    put: Callable[[Json], ContentId],
    sealer: BoundSealer,
    context: EngineContext,
) -> SnapshotRows:
    data = snapshot.data or {}
    snapshot_id = SnapshotId(snapshot.id)
    environment = parse_environment(document_of(data.get("environment") or {}))
    hidden = {name for name, parameter in built.compiled.plan.parameters.items() if parameter.hidden}
    hidden.update(environment.encrypted_param_names)
    goal = {
        "template": put(data.get("template") or {}),
        "environment": put(stored_environment(environment, hidden, sealer.seal)),
        "files": put(dict(data.get("files") or {})),
        "parameters": sealed_values({}, hidden, sealer.seal),
    }
    documents = data.get("resources") or {}
    copies = []
    for row in built.present_rows().values():
        stored = (documents.get(row.name) or {}).get("resource_data") or {}
        images = copies_of(stored)
        if row.is_untouched or (documents and row.name not in documents):
            continue
        copies.append(
            replace(
                row,
                id=context.database.ids.new(ResourceId),
                snapshot_id=snapshot_id,
                data={**(row.data or {}), **images} if images else row.data,
                key=str(uuid.uuid4()),
                requires=(),
                replaces=None,
            )
        )
    row_of_snapshot = Snapshot(
        id=snapshot_id,
        stack_id=StackId(snapshot.stack_id),
        action="CREATE",
        traversal=TraversalId(str(uuid.uuid4())),
        goal=goal,
        tags=list(data.get("tags") or ()),
        **SNAPSHOT.to_stoker(snapshot),
    )
    return SnapshotRows(row_of_snapshot, copies)
