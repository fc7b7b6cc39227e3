"""The end of a traversal: the final compare-and-swap on the stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import clocks, credentials, events, notices, snapshots, stacks, tables, tasks
from .countdown import ABORTED
from .ids import StackId, TaskId, TraversalId
from .stacks import LateStack, Stack
from .states import Status, TaskKind, TaskState

KEEP_TASKS = 60.0
"""Seconds that the tasks of a finished traversal are kept, for those who look why it ended so."""


@dataclass(frozen=True)
class Ended:
    """A stack that reached a final status, and the parents' tasks that waited for it."""

    stack_id: StackId
    status: Status
    woken: Mapping[TaskId, TraversalId]


_FINISH = (
    sa.select(
        tables.task.c.traversal,
        tables.task.c.stack_id,
        tables.task.c.pending,
        tables.task.c.reason,
        tables.task.c.state,
        tables.task.c.held,
        tables.task.c.hook,
        tables.task.c.waits_on,
    )
    .where(tables.task.c.id == sa.bindparam("row_id"))
    .with_for_update()
)


def finish(conn: Connection, finish_id: TaskId, *, by: str | None, now: float) -> Ended | None:
    """End the traversal if none of its tasks is left; None if some are, or if it was superseded.  Where all
    that are left are held, or behind that, the stack's clock stands from now on.

    :param by: host of the conductor that does it, for the event.
    """
    t = tables.task
    row = conn.execute(_FINISH, {"row_id": finish_id}).first()
    if row is None or row.state != TaskState.WAITING:
        return None
    if row.pending > 0:
        if clocks.may_stand(row):
            clocks.stand(conn, finish_id, now=now)
        return None
    # The row stays a while; its due_at brings the purge duty.
    conn.execute(
        sa.update(t)
        .where(t.c.id == finish_id)
        .values(state=TaskState.DONE, pending=0, due_at=now + KEEP_TASKS)
    )
    traversal = TraversalId(row.traversal)
    ended = end_stack(conn, StackId(row.stack_id), traversal, row.reason, by=by, now=now)
    if ended is None:  # It may have been that of a snapshot alone.
        snapshots.end(conn, [traversal], reason=row.reason or "", failed=row.reason is not None)
    elif row.hook == ABORTED:
        # The user wants to see what is there, and to go on from it.
        stacks.forgo_rollback(conn, ended.stack_id)
    return ended


def end_stack(
    conn: Connection,
    stack_id: StackId,
    traversal: TraversalId,
    failure: str | None,
    *,
    by: str | None,
    now: float,
) -> Ended | None:
    """Bring the stack to COMPLETE, or to FAILED with the reason `failure`; None if it was superseded."""
    stack = stacks.lock(conn, stack_id)
    if stack.traversal != traversal or stack.status != Status.IN_PROGRESS:
        return None
    status = Status.COMPLETE if failure is None else Status.FAILED
    reason = failure or f"Stack {stack.action} completed successfully"
    if stack.action in snapshots.CONCERNED:
        snapshots.end(conn, [traversal], reason=reason, failed=failure is not None)
    close_finish_tasks(conn, [stack_id], now=now)
    if status == Status.COMPLETE and stack.action == "DELETE":
        stacks.mark_deleted(conn, stack_id, traversal, now)
        credentials.release(conn, stack_id, now)
    else:
        stacks.finish(conn, stack_id, traversal, status, reason, now)
    events.add_many(conn, [stack_event(stack, status, reason, by=by, now=now)])
    notices.about_stacks(conn, [stack_id])
    woken = tasks.wake(conn, f"stack:{stack_id}", now=now)
    return Ended(
        stack_id=stack_id,
        status=status,
        woken={task_id: parent for parent, ids in woken.items() for task_id in ids},
    )


def close_finish_tasks(conn: Connection, stack_ids: Sequence[StackId], *, now: float) -> None:
    """Hand the finish tasks that end nothing any more to the purge duty, for one who ends what the stacks do;
    a deletion of a snapshot goes on beside that."""
    t = tables.task
    conn.execute(
        sa.update(t)
        .where(
            t.c.stack_id.in_(stack_ids),
            t.c.kind == TaskKind.FINISH,
            t.c.state == TaskState.WAITING,
            t.c.traversal.not_in(snapshots.being_deleted(stack_ids)),
        )
        .values(state=TaskState.CANCELLED, due_at=now + KEEP_TASKS)
    )


def stack_event(
    stack: Stack | LateStack, status: Status, reason: str, *, by: str | None, now: float
) -> events.Event:
    """The stack's own event: it stands in the list under the stack's name."""
    return events.new(
        stack_id=stack.id,
        resource_name=stack.name,
        resource_type="OS::Heat::Stack",
        physical_id=stack.id,
        action=stack.action,
        status=status,
        reason=reason,
        conductor=by,
        at=now,
    )
