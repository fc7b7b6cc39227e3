"""Ending traversals before their work is done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db import snapshots, stacks, traversals
from ..db.ids import StackId, TaskId, TraversalId
from ..db.rows import ReadyTasks, Stack
from ..db.stacks import DueStack, LateStack
from ..db.states import Status
from ..db.work import cancel, due_tasks, endings, stack_transitions, tasks, transitions
from ..db.work.stack_transitions import Failure
from .context import Hints, announce


@dataclass(frozen=True)
class TimedOutStacks:
    """Stacks that were failed by one transaction.

    :ivar stacks: their ids.
    :ivar running: their traversals of which tasks still run: the conductors are to stop these.
    :ivar woken: tasks of parents that waited for the stacks: to be announced.
    """

    stacks: Sequence[StackId] = ()
    running: Sequence[TraversalId] = ()
    woken: ReadyTasks = field(default_factory=ReadyTasks)


def announce_timed_out(hints: Hints, ended: TimedOutStacks) -> None:
    """Send the hints for stacks that were failed, once that is committed."""
    for traversal in ended.running:
        hints.cancel(traversal)
    announce(hints, ended.woken)


def time_out_all(
    conn: Connection, due: Sequence[DueStack], *, by: str, now: float, grace: float
) -> TimedOutStacks:
    """Fail each of the stacks whose deadline has passed, unless its traversal has changed meanwhile.

    The caller sends the cancel requests that stop running tasks.  Their results until then are still recorded
    on their resources, but start nothing.

    :param by: host of the conductor, for the events.
    :param grace: seconds in which running tasks may end.
    """
    traversal_of = {stack.id: stack.traversal for stack in due}
    # Since the stacks were listed a request may have begun another action, which has a deadline of its own.
    late = [
        stack
        for stack in stacks.lock_due(conn, traversal_of, now)
        if stack.traversal == traversal_of[stack.id] and stack.status == Status.IN_PROGRESS
    ]
    if not late:
        return TimedOutStacks()
    # The reason names the action, so the stacks of each action are written together.
    for action in sorted({stack.action for stack in late}):
        those = [stack for stack in late if stack.action == action]
        _fail(conn, those, _reason(action), by=by, now=now)
    return _release(conn, late, now, grace)


def cancel_stack(
    conn: Connection, expected: Stack, reason: str, *, now: float, grace: float
) -> TimedOutStacks | None:
    """Fail a stack that is in progress, at a user's request; None if it is not as `expected` any more.

    :param grace: seconds in which running tasks may end.
    """
    stack = stacks.lock(conn, expected.id)
    if stack.traversal != expected.traversal or stack.status != Status.IN_PROGRESS:
        # The user has seen another state than this one; they decide again.
        return None
    state = stack.action, stack.status
    late = [LateStack(stack.id, stack.name, stack.traversal, *state, stack.has_sinks)]
    # Who cancels without a rollback wants the stack as it is now; a rollback is an action of its own.
    _fail(conn, late, reason, rollback=False, now=now)
    return _release(conn, late, now, grace)


def fail_unreadable(
    conn: Connection, task_id: TaskId, why: str, *, by: str, now: float, grace: float
) -> TimedOutStacks:
    """End a task that this release cannot read, and fail its stack, as one whose deadline has passed.

    Of the rows only ids and words are read, for anything else in them may be damaged.

    :param why: the damage, in words.
    :param by: host of the conductor, for the event.
    :param grace: seconds in which running tasks may end.
    """
    if (task := tasks.find_unfinished(conn, task_id)) is None:
        return TimedOutStacks()
    stack = stacks.lock_as_late(conn, task.stack_id)
    ended = TimedOutStacks()
    if stack is not None and (stack.traversal, stack.status) == (task.traversal, Status.IN_PROGRESS):
        # No rollback: its plan would be made of rows of this stack, too.
        _fail(conn, [stack], f"Task {task_id} cannot be read: {why}", rollback=False, by=by, now=now)
        ended = _release(conn, [stack], now, grace)
    # The failure ends the unstarted tasks of the current traversal; this one may run, or be of another.
    transitions.cancel(conn, [task_id])
    return ended


def cancel_nested(
    conn: Connection, stack_ids: Sequence[StackId], *, now: float, grace: float
) -> list[TraversalId]:
    """Fail the actions of the stacks nested in these, on all levels.

    No task waits for them any more, because the caller has ended the actions of their parents.

    :param grace: seconds in which running tasks may end.
    :returns: the traversals of which tasks still run: the conductors are to stop these.
    """
    children = stacks.lock_inside(conn, stack_ids)
    if not children:
        return []
    _fail(conn, children, "Stopped with the stack that it is part of", rollback=False, now=now)
    return _stop(conn, children, now, grace)


def _fail(
    conn: Connection,
    late: Sequence[LateStack],
    reason: str,
    *,
    now: float,
    rollback: bool = True,
    by: str | None = None,
) -> None:
    """Fail the actions of stacks whose rows are locked."""
    for stack in late:
        # Tasks are locked before their stacks end: who parks one waits here, and then finds it cancelled.
        cancel.cancel_unstarted(conn, stack.id, stack.traversal, now=now)
    ids = [stack.id for stack in late]
    current = {stack.id: stack.traversal for stack in late}
    stack_transitions.fail(conn, current, Failure(reason, rolled_back=rollback), now)
    _end_snapshots(conn, late, reason)
    traversals.close(conn, ids, now=now)
    # Events are shown in the order in which they are stored: the failure comes before its rollback.
    endings.record_stack_events(conn, late, Status.FAILED, reason, by=by, now=now)
    if rollback:
        endings.begin_rollbacks(conn, ids, now=now)


def _reason(action: str) -> str:
    return f"{action.title()} timed out"


def _end_snapshots(conn: Connection, late: Sequence[LateStack], reason: str) -> None:
    """Fail the snapshots that the stacks' actions create or delete."""
    traversals = [stack.traversal for stack in late if stack.action in snapshots.CONCERNED]
    if traversals:
        snapshots.end(conn, traversals, reason=reason, failed=True)


def _release(conn: Connection, late: Sequence[LateStack], now: float, grace: float) -> TimedOutStacks:
    """Stop the running tasks of stacks that have failed, and the nested stacks; wake the tasks of parents."""
    ids = [stack.id for stack in late]
    # The parents' tasks wake in this transaction, or they would notice the end at their next check only.
    running = [*_stop(conn, late, now, grace), *cancel_nested(conn, ids, now=now, grace=grace)]
    return TimedOutStacks(ids, running, due_tasks.wake_for_stacks(conn, ids, now=now))


def _stop(conn: Connection, late: Sequence[LateStack], now: float, grace: float) -> list[TraversalId]:
    """Ask all running tasks of the stacks, of any traversal, to stop; return the traversals."""
    # Tasks of superseded traversals may still run, and they change the stack's resources no less.
    running = tasks.lock_running(conn, [stack.id for stack in late])
    cancel.ask_to_stop(conn, [task.id for task in running], now=now, stop_by=now + grace)
    return sorted({task.traversal for task in running})
