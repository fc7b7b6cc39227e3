"""The end of a traversal: the final compare-and-swap on the stack."""

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk, credentials, event_sinks, events, notifications, snapshots, stacks, traversals
from ..bulk import Writes
from ..ids import StackId, TaskId, TraversalId, TraversalNumber
from ..rows import Event, ReadyTasks, Stack, Task, Traversal
from ..schema import tables
from ..stacks import LateStack
from ..states import Standing, Status, TraversalState
from . import countdown, stack_transitions
from .stack_transitions import Failure

ROLLBACK_STARTED = "Stack ROLLBACK started"
PLANNED_WITHIN = 3600.0
"""Seconds after which a rollback fails that nobody has planned; it gets its own deadline when it is."""


@dataclass(frozen=True)
class Ended:
    """Stacks that reached a final status, and the parents' tasks that waited for them.

    :ivar stacks: their final statuses.
    :ivar traversals: those that have brought them there.
    """

    stacks: Mapping[StackId, Status] = field(default_factory=dict)
    woken: ReadyTasks = field(default_factory=ReadyTasks)
    traversals: Set[TraversalId] = frozenset()


def finish(
    conn: Connection,
    numbers: Mapping[TraversalNumber, int],
    *,
    by: str | None,
    now: float,
    writes: Writes | None = None,
) -> Ended:
    """End those of the traversals that have no open tasks and were not superseded.

    Where breakpoints hold or block all open tasks, the stack's deadline is paused.

    :param numbers: by how much each of them is counted down first.
    :param by: host of the conductor, for the events; None: the API.
    :param writes: writes that were put off, to be run with the first statement; None: there are none.
    """
    over: list[Traversal] = []
    counted = traversals.count_down_each(conn, numbers, [] if writes is None else writes)
    for number, row in sorted(counted.items()):
        if row.state == TraversalState.RUNNING and row.open_tasks <= 0:
            over.append(row)
        elif row.state == TraversalState.RUNNING and row.may_pause:
            countdown.pause_deadline(conn, number, now=now)
    if not over:
        return Ended()
    traversals.end(conn, [row.id for row in over], now=now)
    ended = end_stacks(
        conn, [StackEnd(row.stack_id, row.traversal, _failure_of(row)) for row in over], by=by, now=now
    )
    for row in over:
        if row.traversal not in ended.traversals:  # It may have been that of a snapshot alone.
            failed = row.failure is not None
            snapshots.end(conn, [row.traversal], reason=row.failure or "", failed=failed)
    return ended


def _failure_of(row: Traversal) -> Failure | None:
    # A user who aborts at a breakpoint inspects the resources, and updates them: so nothing is rolled back.
    if row.failure is None:
        return None
    return Failure(row.failure, row.failure_cause, rolled_back=not row.aborted)


@dataclass(frozen=True)
class Stopped:
    """Tasks that do not run any more; the transaction holds their rows.

    :ivar over: those that have ended.
    :ivar held: those that a breakpoint holds.
    :ivar parked: those that wait for nested stacks whose deadlines are paused.
    """

    over: Sequence[Task]
    held: Sequence[Task] = ()
    parked: Sequence[TaskId] = ()


def finish_all(
    conn: Connection,
    tasks: Stopped,
    open_tasks: Mapping[TraversalNumber, int],
    *,
    by: str | None,
    now: float,
    writes: Writes,
) -> Ended:
    """Finish the traversals of tasks that have ended or are held, and those that have waited for them.

    :param open_tasks: by how much traversals are counted down first.
    :param by: host of the conductor, for the events; None: the API.
    :param writes: writes of the transaction that were put off; they run in any case.
    """
    if tasks.parked:
        bulk.run(conn, writes)  # A task that is claimed there keeps a deadline running.
        countdown.pause_parents(conn, tasks.parked, now=now)
    numbers = {task.finish_id for task in (*tasks.over, *tasks.held) if task.finish_id is not None}
    if any(task.standing != Standing.OWN for task in tasks.over):
        numbers |= countdown.newer_traversals(conn, tasks.over)
    if not numbers:
        if writes:
            bulk.run(conn, writes)
        return Ended()
    counts = {number: open_tasks.get(number, 0) for number in numbers}
    return finish(conn, counts, by=by, now=now, writes=writes)


@dataclass(frozen=True)
class StackEnd:
    """The end of a traversal of a stack.

    :ivar failure: the failure of the action; None: it is COMPLETE.
    """

    stack_id: StackId
    traversal: TraversalId
    failure: Failure | None = None

    @property
    def status(self) -> Status:
        """Return the final status of the stack."""
        return Status.COMPLETE if self.failure is None else Status.FAILED

    def reason(self, action: str) -> str:
        """Return the reason of that status."""
        return f"Stack {action} completed successfully" if self.failure is None else self.failure.reason


def end_stacks(conn: Connection, ends: Sequence[StackEnd], *, by: str | None, now: float) -> Ended:
    """End the actions of stacks as COMPLETE or FAILED, and start their rollbacks where that is requested.

    Those are left out whose traversals were superseded.
    """
    rows = stacks.lock_each(conn, {end.stack_id for end in ends})
    current = [
        end
        for end in ends
        if (row := rows.get(end.stack_id)) is not None
        and row.traversal == end.traversal
        and row.status == Status.IN_PROGRESS
    ]
    if not current:
        return Ended()
    _end_snapshots(conn, [end for end in current if rows[end.stack_id].action in snapshots.CONCERNED], rows)
    traversals.close(conn, [end.stack_id for end in current], now=now)
    _store_ends(conn, current, rows, now=now)
    recorded = [
        stack_event(row, end.status, end.reason(row.action), by=by, now=now)
        for end in current
        for row in (rows[end.stack_id],)
    ]
    events.add_many(conn, recorded)
    notifications.about_stacks(conn, [end.stack_id for end in current])
    for row in (rows[end.stack_id] for end in current if end.failure is None):
        if row.has_sinks and row.parent_id is None and row.action == "DELETE":
            event_sinks.close(conn, row.id, now)
    if failed := [end.stack_id for end in current if end.failure is not None and end.failure.rolled_back]:
        begin_rollbacks(conn, failed, now=now)
    nested = [end.stack_id for end in current if rows[end.stack_id].parent_id is not None]
    woken = countdown.wake_parents(conn, nested, now=now) if nested else ReadyTasks()
    statuses = {end.stack_id: end.status for end in current}
    return Ended(statuses, woken, {end.traversal for end in current})


def _end_snapshots(conn: Connection, ends: Sequence[StackEnd], rows: Mapping[StackId, Stack]) -> None:
    alike: dict[tuple[str, bool], list[TraversalId]] = {}
    for end in ends:
        key = end.reason(rows[end.stack_id].action), end.failure is not None
        alike.setdefault(key, []).append(end.traversal)
    for (reason, failed), numbers in sorted(alike.items()):
        snapshots.end(conn, numbers, reason=reason, failed=failed)


def _store_ends(
    conn: Connection, ends: Sequence[StackEnd], rows: Mapping[StackId, Stack], *, now: float
) -> None:
    """Store the final statuses; stacks that end in the same way share a statement."""
    deleted: list[Stack] = []
    complete: dict[str, dict[StackId, TraversalId]] = {}
    failed: dict[Failure, dict[StackId, TraversalId]] = {}
    for end in ends:
        action = rows[end.stack_id].action
        if end.failure is not None:
            failed.setdefault(end.failure, {})[end.stack_id] = end.traversal
        elif action == "DELETE":
            deleted.append(rows[end.stack_id])
        else:
            complete.setdefault(end.reason(action), {})[end.stack_id] = end.traversal
    if deleted:
        stack_transitions.complete_deletions(conn, deleted, now)
        credentials.release(conn, [stack.id for stack in deleted], now)
    for reason, current in sorted(complete.items()):
        stack_transitions.complete(conn, current, reason, now)
    for failure, current in failed.items():
        stack_transitions.fail(conn, current, failure, now)


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
        stack_transitions.begin_rollback(
            conn, StackId(stack_id), TraversalId(str(uuid.uuid4())), reason, deadline_at=now + PLANNED_WITHIN
        )
        state = "ROLLBACK", Status.IN_PROGRESS
        late = LateStack(StackId(stack_id), name, TraversalId(traversal), *state, has_sinks)
        begun.append(stack_event(late, Status.IN_PROGRESS, reason, by=None, now=now))
    if begun:
        events.add_many(conn, begun)
        notifications.about_stacks(conn, [StackId(event.stack_id) for event in begun])


def fail_rollback(conn: Connection, expected: Stack, why: str, *, by: str | None, now: float) -> Ended:
    """End a rollback that is not planned yet as failed, unless it is not as `expected` any more."""
    stack = stacks.lock(conn, expected.id)
    if stack.traversal != expected.traversal or stack.rollback_at is None:
        return Ended()
    failure = Failure(f"{stack.reason}; it cannot be rolled back: {why}")
    return end_stacks(conn, [StackEnd(stack.id, stack.traversal, failure)], by=by, now=now)


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
