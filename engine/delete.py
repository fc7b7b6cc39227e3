"""Starting the deletion of a stack, whatever it does at that moment."""

from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import resources, snapshots, stacks
from ..db.states import Status
from ..db.work import cancel
from ..planning.plan import TraversalScope, plan_delete
from .cancel import cancel_nested
from .context import Started
from .start import begin, breakpoints_of, running_of, store_plan


def start_delete(
    conn: Connection, scope: TraversalScope, *, timeout: float, breakpoints_hold: bool = True
) -> Started | None:
    """Supersede whatever the stack does with its deletion; None if it is deleted, or is being deleted.

    The caller asks work that runs on a resource to stop; the resource's deletion waits for its end.

    :param timeout: seconds the deletion may take.
    :param breakpoints_hold: False: no breakpoint stops the deletion.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if stack.action == "DELETE" and stack.status != Status.FAILED:
        return None
    deleting = begin(conn, stack, scope, action="DELETE", deadline_at=scope.now + timeout)
    for traversal in (stack.traversal, *snapshots.take_over(conn, stack.id, scope.traversal)):
        cancel.cancel_unstarted(conn, stack.id, traversal, now=scope.now)
    # The nested stacks are deleted when their resources are; nothing more is done for them until then.
    inside = cancel_nested(conn, [stack.id], now=scope.now, grace=scope.defaults.cancel_grace)
    running = running_of(conn, stack, on_copies=True)
    found, copies = resources.of_stack(conn, stack.id), resources.copies(conn, stack.id)
    again = stack.action == "DELETE"
    breakpoints = replace(breakpoints_of(conn, stack), may_abort=not again, active=breakpoints_hold)
    plan = plan_delete(found, running, replace(scope, breakpoints=breakpoints), copies)
    started = store_plan(conn, deleting, plan, running.values(), now=scope.now)
    return replace(started, superseded=[*started.superseded, *inside])
