"""Reads what plans need of a stored stack: its breakpoints, and counts of the ids to reserve."""

from sqlalchemy.engine import Connection

from ..db import content, resources
from ..db.ids import SnapshotId, StackId
from ..db.rows import Stack
from ..planning.plan import PlannedBreakpoints, ids_needed


def breakpoints_of(conn: Connection, stack: Stack) -> PlannedBreakpoints:
    """Return the breakpoints of a stack whose goal stays as it is."""
    environment = content.get(conn, stack.environment_id)
    return PlannedBreakpoints(environment["resource_registry"], abort=stack.abort_on_breakpoint)


def count_ids_to_act(conn: Connection, stack_id: StackId) -> int:
    """Return how many ids an action on all resources of a stack needs."""
    return ids_needed(len(resources.of_stack(conn, stack_id)))


def count_ids_to_delete(conn: Connection, stack_id: StackId) -> int:
    """Return how many ids the deletion needs: for the resources, and for what snapshots keep of them."""
    return ids_needed(len(resources.of_stack(conn, stack_id)) + len(resources.copies(conn, stack_id)))


def count_ids_to_delete_snapshot(conn: Connection, stack_id: StackId, snapshot_id: SnapshotId) -> int:
    """Return how many ids the deletion of a snapshot needs."""
    return ids_needed(len(resources.copies(conn, stack_id, snapshot_id)))
