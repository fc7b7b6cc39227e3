"""How many ids the plans of actions need that depend on the stored rows alone."""

from sqlalchemy.engine import Connection

from ..db import resources
from ..db.ids import SnapshotId, StackId
from ..planning.plan import ids_needed


def count_ids_to_act(conn: Connection, stack_id: StackId) -> int:
    """Return how many ids an action on all resources of a stack needs."""
    return ids_needed(len(resources.of_stack(conn, stack_id)))


def count_ids_to_delete(conn: Connection, stack_id: StackId) -> int:
    """Return how many ids the deletion needs: for the resources, and for what snapshots keep of them."""
    return ids_needed(len(resources.of_stack(conn, stack_id)) + len(resources.copies(conn, stack_id)))


def count_ids_to_delete_snapshot(conn: Connection, stack_id: StackId, snapshot_id: SnapshotId) -> int:
    """Return how many ids the deletion of a snapshot needs."""
    return ids_needed(len(resources.copies(conn, stack_id, snapshot_id)))
