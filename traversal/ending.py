"""Ending traversals before their work is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..db import endings, events, snapshots, stacks, tables, tasks
from ..db.ids import StackId, TaskId, TraversalId
from ..db.stacks import DueStack, LateStack, Stack
from ..db.states import Status, TaskState
from .hints import Hints, announce_all


@dataclass(frozen=True)
class TimedOut:
    """Stacks that were failed by one transaction.

    :ivar stacks: their ids.
    :ivar running: those of their traversals of which something still runs: to be told to stop.
    :ivar woken: parents' tasks that waited for the stacks: to be announced by hints.
    """

    stacks: Sequence[StackId] = ()
    running: Sequence[TraversalId] = ()
    woken: Mapping[TraversalId, Sequence[TaskId]] = field(default_factory=dict)


def tell(hints: Hints, ended: TimedOut) -> None:
    """Say what has ended, once it is committed."""
    for traversal in ended.running:
        hints.cancel(traversal)
    announce_all(hints, ended.woken)


def time_out(conn: Connection, due: DueStack, *, by: str, now: float) -> bool:
    """As time_out_all, for one stack; whether it was failed."""
    return bool(time_out_all(conn, [due], by=by, now=now).stacks)


def time_out_all(conn: Connection, due: Sequence[DueStack], *, by: str, now: float) -> TimedOut:
    """Fail each of the stacks whose deadline has passed while it still does what it did.

    What runs is left to end, or to be stopped by the cancel that the caller sends; its results are still
    recorded on its resources, but start nothing.

    :param by: host of the conductor, for the events.
    """
    seen = {stack.id: stack.traversal for stack in due}
    late = [
        stack
        for stack in stacks.lock_due(conn, seen, now)
        if stack.traversal == seen[stack.id] and stack.status == Status.IN_PROGRESS
    ]
    if not late:
        return TimedOut()
    for stack in late:
        tasks.cancel_unstarted(conn, stack.traversal, now=now)
    for action in sorted({stack.action for stack in late}):
        those = [stack for stack in late if stack.action == action]
        stacks.fail_locked(conn, [stack.id for stack in those], _reason(action), now)
        _end_snapshots(conn, those, _reason(action))
    endings.close_finish_tasks(conn, [stack.id for stack in late], now=now)
    events.add_many(
        conn,
        [endings.stack_event(stack, Status.FAILED, _reason(stack.action), by=by, now=now) for stack in late],
    )
    return TimedOut([stack.id for stack in late], _running(conn, late), _wake(conn, late, now))


def stop(conn: Connection, seen: Stack, reason: str, *, now: float) -> TimedOut | None:
    """Fail a stack that is in progress, because the user wishes it; None if it is not as `seen` any more."""
    stack = stacks.lock(conn, seen.id)
    if stack.traversal != seen.traversal or stack.status != Status.IN_PROGRESS:
        return None
    late = [LateStack(stack.id, stack.name, stack.traversal, stack.action, stack.status)]
    tasks.cancel_unstarted(conn, stack.traversal, now=now)
    stacks.fail_locked(conn, [stack.id], reason, now, rollback=False)
    _end_snapshots(conn, late, reason)
    endings.close_finish_tasks(conn, [stack.id], now=now)
    events.add_many(conn, [endings.stack_event(stack, Status.FAILED, reason, by=None, now=now)])
    return TimedOut([stack.id], _running(conn, late), _wake(conn, late, now))


def _reason(action: str) -> str:
    return f"{action.title()} timed out"


def _end_snapshots(conn: Connection, late: Sequence[LateStack], reason: str) -> None:
    """Fail what the stacks do to their snapshots."""
    traversals = [stack.traversal for stack in late if stack.action in snapshots.CONCERNED]
    if traversals:
        snapshots.end(conn, traversals, reason=reason, failed=True)


def _running(conn: Connection, late: Sequence[LateStack]) -> list[TraversalId]:
    t = tables.task
    wanted = [stack.traversal for stack in late]
    found = conn.execute(
        sa.select(t.c.traversal).where(t.c.traversal.in_(wanted), t.c.state == TaskState.RUNNING).distinct()
    )
    return [TraversalId(traversal) for traversal in found.scalars()]


def _wake(conn: Connection, late: Sequence[LateStack], now: float) -> Mapping[TraversalId, Sequence[TaskId]]:
    """Few stacks are waited for, so that is asked for all of them at once."""
    t = tables.task
    names = [f"stack:{stack.id}" for stack in late]
    awaited = conn.execute(sa.select(t.c.waits_on).where(t.c.waits_on.in_(names)).distinct()).scalars()
    woken: dict[TraversalId, list[TaskId]] = {}
    for name in sorted(awaited):
        for traversal, task_ids in tasks.wake(conn, name, now=now).items():
            woken.setdefault(traversal, []).extend(task_ids)
    return woken
