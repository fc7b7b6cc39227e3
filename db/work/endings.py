"""The end of a traversal: the final compare-and-swap on the stack."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import credentials, events, notifications, snapshots, stacks, traversals
from ..ids import StackId, TaskId, TraversalId, TraversalNumber
from ..rows import Stack
from ..schema import tables
from ..stacks import LateStack
from ..states import Status, TraversalState
from . import deadlines, tasks

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
    """:ivar rolled_back: where that is wished for the stack."""

    reason: str
    rolled_back: bool = True


def finish(conn: Connection, number: TraversalNumber, *, by: str | None, now: float) -> Ended | None:
    """End the traversal if none of its tasks is left; None if some are, or if it was superseded.  Where all
    that are left are held, or behind that, the stack's deadline is paused.

    :param by: host of the conductor that does it, for the event.
    """
    found = traversals.lock(conn, number)
    if found is None or found.state != TraversalState.RUNNING:
        return None
    if found.open_tasks > 0:
        if found.may_pause:
            deadlines.pause_deadline(conn, number, now=now)
        return None
    traversals.end(conn, number, now=now)
    # At a breakpoint the user wants to see what is there, and to go on from it.
    failure = None if found.failure is None else Failure(found.failure, rolled_back=not found.aborted)
    ended = end_stack(conn, found.stack_id, found.traversal, failure, by=by, now=now)
    if ended is None:  # It may have been that of a snapshot alone.
        failed = found.failure is not None
        snapshots.end(conn, [found.traversal], reason=found.failure or "", failed=failed)
    return ended


def end_stack(
    conn: Connection,
    stack_id: StackId,
    traversal: TraversalId,
    failure: Failure | None,
    *,
    by: str | None,
    now: float,
) -> Ended | None:
    """Bring the stack to COMPLETE, or to FAILED, and from there to its rollback where that is wished; None if
    it was superseded."""
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
        if failure is not None and not failure.rolled_back:
            stacks.forgo_rollback(conn, stack_id)
    record_stack_events(conn, [stack], status, reason, by=by, now=now)
    begin_rollbacks(conn, [stack_id], now=now)
    woken = tasks.wake(conn, f"stack:{stack_id}", now=now)
    return Ended(
        stack_id=stack_id,
        status=status,
        woken={task_id: parent for parent, ids in woken.items() for task_id in ids},
    )


def begin_rollbacks(conn: Connection, stack_ids: Sequence[StackId], *, now: float) -> None:
    """Turn those of the stacks that this transaction has failed, and that are to be rolled back, to a
    traversal that does that: so nobody sees them as failed meanwhile.

    It has no tasks yet, for to plan it may take long; a duty finds it by `rollback_at`.
    """
    s = tables.stack
    waiting = sa.and_(s.c.id.in_(sorted(stack_ids)), s.c.rollback_at.is_not(None))
    query = sa.select(s.c.id, s.c.name, s.c.traversal, s.c.reason)
    begun: list[events.Event] = []
    for stack_id, name, traversal, cause in conn.execute(query.where(waiting).order_by(s.c.id)).all():
        reason = f"{ROLLBACK_STARTED}: {cause}"
        columns = {
            "traversal": str(uuid.uuid4()),
            "action": "ROLLBACK",
            "status": Status.IN_PROGRESS,
            "reason": reason,
            "deadline_at": now + PLANNED_WITHIN,
        }
        conn.execute(sa.update(s).where(s.c.id == stack_id).values(**columns))
        late = LateStack(StackId(stack_id), name, TraversalId(traversal), "ROLLBACK", Status.IN_PROGRESS)
        begun.append(stack_event(late, Status.IN_PROGRESS, reason, by=None, now=now))
    if begun:
        events.add_many(conn, begun)
        notifications.about_stacks(conn, [StackId(event.stack_id) for event in begun])


def give_up_rollback(conn: Connection, seen: Stack, why: str, *, by: str | None, now: float) -> Ended | None:
    """End a rollback that is not planned yet as failed; None if it is not as `seen` any more."""
    stack = stacks.lock(conn, seen.id)
    if stack.traversal != seen.traversal or stack.rollback_at is None:
        return None
    told = f"{stack.reason}; it cannot be rolled back: {why}"
    if stack.status == Status.IN_PROGRESS:
        return end_stack(conn, stack.id, stack.traversal, Failure(told), by=by, now=now)
    # A release before has left it as FAILED.
    stacks.give_up_rollback(conn, stack.id, told)
    return Ended(stack.id, Status.FAILED, {})


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
