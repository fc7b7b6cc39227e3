"""Snapshots as rows of Heat's: a document of the stack at that time; pure."""

from ....db.rows import Snapshot, Stack
from ....db.states import Status
from ....engine.exports import snapshot_document
from ....sealing.stored import InClear, Unseal
from ....shapes import Json
from ....template.residual import holds_secret
from ..heat.rows import HeatSnapshot, HeatStack
from ..mapping.columns import SNAPSHOT
from ..mapping.data import copies_of
from .stoker_rows import StokerTree


def heat_snapshots(
    stack: Stack, tree: StokerTree, unseal: Unseal, stored_stack: HeatStack | None
) -> tuple[list[HeatSnapshot], list[str]]:
    """Return the snapshots of a stack, and notes about those that cannot be moved.

    Those that Heat's database has already stay as they are.  Of these, the ones are left out that Stoker has
    deleted; an import never takes over those of stacks with nested ones, and those that are not complete.

    :param stored_stack: the stack as Heat's database has it; None: it has none.
    """
    ids = {snapshot.id for snapshot in tree.snapshots}
    has_children = any(child.parent_id == stack.id for child in tree.stacks)
    stored = () if stored_stack is None else stored_stack.snapshots
    snapshots = [
        snapshot
        for snapshot in stored
        if snapshot.id in ids or has_children or snapshot.status != Status.COMPLETE or snapshot.data is None
    ]
    stored_ids = {snapshot.id for snapshot in stored}
    notes: list[str] = []
    for snapshot in tree.snapshots:
        if snapshot.stack_id != stack.id or snapshot.id in stored_ids:
            continue
        label = f"snapshot {snapshot.name or snapshot.id}"
        if has_children:
            notes.append(f"{label} of a stack with nested ones stays: take a new one in Heat")
        elif snapshot.action != "CREATE" or snapshot.status != Status.COMPLETE:
            notes.append(f"{label} was never completed, or is being deleted, and stays")
        elif _has_secrets(snapshot, tree):
            notes.append(
                f"{label} has hidden values, which Heat stores in clear, and stays: take a new one in Heat"
            )
        else:
            snapshots.append(_row(snapshot, stack, tree, unseal))
    return snapshots, notes


def _has_secrets(snapshot: Snapshot, tree: StokerTree) -> bool:
    environment = tree.contents[snapshot.contents[1]]
    return holds_secret(environment) or holds_secret(snapshot.goal["parameters"])


def _row(snapshot: Snapshot, stack: Stack, tree: StokerTree, unseal: Unseal) -> HeatSnapshot:
    copies = [row for row in tree.copies if row.snapshot_id == snapshot.id]
    document = snapshot_document(stack, snapshot, tree.contents, copies, InClear(unseal))
    resources: dict[str, Json] = {
        name: {**entry, "resource_data": copies_of(entry["resource_data"])}
        for name, entry in document["resources"].items()
    }
    return HeatSnapshot(
        id=snapshot.id,
        stack_id=stack.id,
        action=snapshot.action,
        data={**document, "resources": resources},
        **SNAPSHOT.to_heat(snapshot),
    )
