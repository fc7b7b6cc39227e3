"""The end of a traversal: the final compare-and-swap on the stack."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import credentials, event_sinks, events, notifications, snapshots, stacks, traversals
from ..ids import StackId, TaskId, TraversalId, TraversalNumber
from ..rows import Event, FailureCause, Stack, Task
from ..schema import tables
from ..stacks import LateStack
from ..states import Standing, Status, TraversalState
from . import countdown

ROLLBACK_STARTED = "Stack ROLLBACK started"
PLANNED_WITHIN = 3600.0
"""Seconds after which a rollback fails that nobody has planned; it gets its own deadline when it is."""


@dataclass(frozen=True)
class Ended:
    """A stack that reached a final status, and the parents' tasks that waited for it."""

    stack_id: StackId
    status: Status
    woken: Mapping[TaskId, TraversalId]


@dataclass(frozen=True)
class Failure:
    """The reason why a stack's action fails.

    :ivar cause: the cause that the reason names; None: no resource is the cause.
    :ivar rolled_back: whether the stack is rolled back, if its options request that.
    """

    reason: str
    cause: FailureCause | None = None
    rolled_back: bool = True


def finish(
    conn: Connection, number: TraversalNumber, *, ended_tasks: int = 0, by: str | None, now: float
) -> Ended | None:
    """End a traversal without open tasks; return None if some are open, or if it was superseded.

    Where breakpoints hold or block all open tasks, the stack's deadline is paused.

    :param ended_tasks: by how much it is counted down first.
    :param by: host of the conductor, for the event; None: the API.
    """
    row = traversals.count_down(conn, number, ended_tasks) if ended_tasks else traversals.lock(conn, number)
    if row is None or row.state != TraversalState.RUNNING:
        return None
    if row.open_tasks > 0:
        if row.may_pause:
            countdown.pause_deadline(conn, number, now=now)
        return None
    traversals.end(conn, number, now=now)
    # A user who aborts at a breakpoint inspects the resources, and updates them: so nothing is rolled back.
    failure = (
        None if row.failure is None else Failure(row.failure, row.failure_cause, rolled_back=not row.aborted)
    )
    ended = end_stack(conn, row.stack_id, row.traversal, failure, by=by, now=now)
    if ended is None:  # It may have been that of a snapshot alone.
        failed = row.failure is not None
        snapshots.end(conn, [row.traversal], reason=row.failure or "", failed=failed)
    return ended


def finish_all(
    conn: Connection,
    over: Sequence[Task],
    *,
    open_tasks: Mapping[TraversalNumber, int],
    held: Sequence[Task] = (),
    parked: Sequence[TaskId] = (),
    by: str | None,
    now: float,
) -> tuple[list[tuple[StackId, Status]], dict[TaskId, TraversalId]]:
    """Finish the traversals of tasks that have ended or are held, and those that have waited for them.

    :param open_tasks: by how much traversals are counted down first.
    :param parked: tasks that wait for nested stacks whose deadlines are paused; the caller holds their rows.
    :param by: host of the conductor, for the events; None: the API.
    :returns: the stacks that have ended, with their statuses; and the parents' tasks that were woken.
    """
    if parked:
        countdown.pause_parents(conn, parked, now=now)
    numbers = {task.finish_id for task in (*over, *held)}
    if any(task.standing != Standing.OWN for task in over):
        numbers |= countdown.newer_traversals(conn, over)
    ended: list[tuple[StackId, Status]] = []
    woken: dict[TaskId, TraversalId] = {}
    for number in sorted(number for number in numbers if number is not None):
        done = finish(conn, number, ended_tasks=open_tasks.get(number, 0), by=by, now=now)
        if done is not None:
            ended.append((done.stack_id, done.status))
            woken.update(done.woken)
    return ended, woken


def end_stack(
    conn: Connection,
    stack_id: StackId,
    traversal: TraversalId,
    failure: Failure | None,
    *,
    by: str | None,
    now: float,
) -> Ended | None:
    """End a stack's action as COMPLETE or FAILED, and start its rollback where that is requested.

    :param failure: the failure of the action; None: it is COMPLETE.
    :returns: None: the traversal was superseded.
    """
    stack = stacks.lock(conn, stack_id)
    if stack.traversal != traversal or stack.status != Status.IN_PROGRESS:
        return None
    status = Status.COMPLETE if failure is None else Status.FAILED
    reason = f"Stack {stack.action} completed successfully" if failure is None else failure.reason
    if stack.action in snapshots.CONCERNED:
        snapshots.end(conn, [traversal], reason=reason, failed=failure is not None)
    traversals.close(conn, [stack_id], now=now)
    if status == Status.COMPLETE and stack.action == "DELETE":
        stacks.mark_deleted(conn, stack_id, traversal, now)
        credentials.release(conn, stack_id, now)
    else:
        stacks.finish(conn, stack_id, traversal, status, reason, now)
        if failure is not None and failure.cause is not None:
            stacks.store_cause(conn, stack_id, failure.cause)
        if failure is not None and not failure.rolled_back:
            stacks.skip_rollback(conn, stack_id)
    record_stack_events(conn, [stack], status, reason, by=by, now=now)
    if stack.has_sinks and stack.parent_id is None and (stack.action, status) == ("DELETE", Status.COMPLETE):
        event_sinks.close(conn, stack_id, now)
    if failure is not None and failure.rolled_back:
        begin_rollbacks(conn, [stack_id], now=now)
    woken = {} if stack.parent_id is None else countdown.wake_parents(conn, stack_id, now=now)
    return Ended(
        stack_id=stack_id,
        status=status,
        woken={task_id: parent for parent, ids in woken.items() for task_id in ids},
    )


def begin_rollbacks(conn: Connection, stack_ids: Sequence[StackId], *, now: float) -> None:
    """Start a traversal that rolls back each stack that this transaction has failed and marked for that.

    So nobody sees the stack as failed before its rollback.  The traversal has no tasks yet, because its plan
    may take long: a duty finds the stack by `rollback_at`, and plans it.
    """
    s = tables.stack
    waiting = sa.and_(s.c.id.in_(sorted(stack_ids)), s.c.rollback_at.is_not(None))
    query = sa.select(s.c.id, s.c.name, s.c.traversal, s.c.reason, s.c.has_sinks)
    begun: list[Event] = []
    rows = conn.execute(query.where(waiting).order_by(s.c.id)).all()
    for stack_id, name, traversal, cause, has_sinks in rows:
        reason = f"{ROLLBACK_STARTED}: {cause}"
        columns = {
            "traversal": str(uuid.uuid4()),
            "action": "ROLLBACK",
            "status": Status.IN_PROGRESS,
            "reason": reason,
            "deadline_at": now + PLANNED_WITHIN,
        }
        conn.execute(sa.update(s).where(s.c.id == stack_id).values(**columns))
        state = "ROLLBACK", Status.IN_PROGRESS
        late = LateStack(StackId(stack_id), name, TraversalId(traversal), *state, has_sinks)
        begun.append(stack_event(late, Status.IN_PROGRESS, reason, by=None, now=now))
    if begun:
        events.add_many(conn, begun)
        notifications.about_stacks(conn, [StackId(event.stack_id) for event in begun])


def fail_rollback(conn: Connection, expected: Stack, why: str, *, by: str | None, now: float) -> Ended | None:
    """End a rollback that is not planned yet as failed; None if it is not as `expected` any more."""
    stack = stacks.lock(conn, expected.id)
    if stack.traversal != expected.traversal or stack.rollback_at is None:
        return None
    reason = f"{stack.reason}; it cannot be rolled back: {why}"
    return end_stack(conn, stack.id, stack.traversal, Failure(reason), by=by, now=now)


def record_stack_events(
    conn: Connection,
    ended: Sequence[Stack | LateStack],
    status: Status,
    reason: str,
    *,
    by: str | None,
    now: float,
) -> None:
    """Record that stacks have begun or ended an action: their own events, and the notifications."""
    events.add_many(conn, [stack_event(stack, status, reason, by=by, now=now) for stack in ended])
    notifications.about_stacks(conn, [stack.id for stack in ended])


def stack_event(
    stack: Stack | LateStack, status: Status, reason: str, *, by: str | None, now: float
) -> Event:
    """Return the stack's own event, which lists show under the stack's name."""
    return Event(
        stack_id=stack.id,
        resource_name=stack.name,
        resource_type="OS::Heat::Stack",
        physical_id=stack.id,
        action=stack.action,
        status=status,
        reason=reason,
        conductor=by,
        at=now,
        has_sinks=stack.has_sinks,
    )
