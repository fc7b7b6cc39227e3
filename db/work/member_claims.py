"""Claims of members: reading them, and releasing those whose conductors cannot work on them any more."""

from collections.abc import Callable, Container, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..bulk import chunks
from ..ids import MemberId, TaskId, TraversalId
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import REDELIVER_AFTER, TaskState
from . import cancel, losses, orphans, transitions
from .breakpoints import advance
from .cancel import ASK_AGAIN, show_aborted, show_lost
from .carry_over import superseded_tasks
from .countdown import FinishedTask
from .losses import Loss
from .tasks import by_traversal

Taken = Callable[[Connection, Task], None]


def release(
    conn: Connection,
    claims: Sequence[tuple[TaskId, int]],
    *,
    now: float,
    on_taken: Taken | None = None,
    loss: Loss | None = None,
    lost: Container[TaskId] | None = None,
) -> ReadyTasks:
    """Release claims (task, attempt) whose conductor cannot work on them any more.

    The next claim raises the attempt, so a late result of the old attempt is refused.  A task whose traversal
    was superseded, or whose stack has ended, is cancelled instead, and its successors are counted down.

    :param on_taken: called with each task that is cancelled here, whose step may still run; such a task keeps
        its conductor's name until the conductor has answered.
    :param loss: the loss of a conductor that died or went silent; it is counted for the released tasks.
    :param lost: the tasks whose steps were lost, so that nobody knows how far they have come; None: all.
    :returns: the tasks made ready, by traversal.
    """
    t = tables.task
    attempts = dict(claims)
    freed = ReadyTasks()
    for chunk in chunks(attempts):
        rows = conn.execute(
            sa.select(t)
            .where(t.c.id.in_(chunk), t.c.state == TaskState.RUNNING)
            .order_by(t.c.id)
            .with_for_update()
        ).mappings()
        claimed = [task for task in (Task.of(dict(row)) for row in rows) if task.attempt == attempts[task.id]]
        over = superseded_tasks(conn, claimed)
        show_lost(conn, [task for task in claimed if lost is None or task.id in lost], now=now)
        if loss is not None:
            losses.count(conn, [task for task in claimed if task.id not in over], loss)
        ended = [task for task in claimed if task.id in over]
        continuing = [task for task in claimed if task.id not in over]
        transitions.release(conn, [task.id for task in continuing], now=now, due_at=now + REDELIVER_AFTER)
        freed.merge(by_traversal(continuing))
        for task_id, traversal in _cancel(conn, ended, on_taken, now=now).items():
            freed.add(traversal, task_id)
    return freed


def _cancel(
    conn: Connection, ended: Sequence[Task], record: Taken | None, *, now: float
) -> dict[TaskId, TraversalId]:
    """Cancel running tasks; return the tasks that became ready by it."""
    if not ended:
        return {}
    ask_at = None if record is None else now + ASK_AGAIN
    transitions.cancel(conn, [task.id for task in ended], ask_at=ask_at)
    show_aborted(conn, [task.resource_id for task in ended], now=now)
    if record is not None:
        for task in ended:
            record(conn, task)
    return advance(conn, [FinishedTask(task) for task in ended], now=now)


Claims = Sequence[tuple[TaskId, int]]


def answer(
    conn: Connection,
    member: MemberId,
    *,
    requested: Claims,
    over: Claims,
    lost: Container[TaskId],
    now: float,
) -> ReadyTasks:
    """Store a conductor's answer about claims (task, attempt) that it was asked to stop and does not hold.

    :param requested: all of the claims: the conductor is not asked for them again.
    :param over: the claims of which no step runs: a step that never began leaves nothing behind.
    :param lost: the tasks whose steps were lost.
    :returns: the tasks made ready, by traversal.
    """
    ready = release(conn, over, now=now, lost=lost)
    cancel.answered(conn, requested, member)
    ready.merge(orphans.without_step(conn, over, now=now))
    return ready


def still_claimed(conn: Connection, claims: Claims) -> list[tuple[TaskId, int]]:
    """Return those of the claims (task, attempt) that hold, and lock their tasks."""
    t = tables.task
    attempts = dict(claims)
    claims_left: list[tuple[TaskId, int]] = []
    for chunk in chunks(attempts):
        rows = conn.execute(
            sa.select(t.c.id, t.c.attempt)
            .where(t.c.id.in_(chunk), t.c.state == TaskState.RUNNING)
            .order_by(t.c.id)
            .with_for_update()
        )
        claims_left += [
            (TaskId(task_id), attempt) for task_id, attempt in rows if attempts[task_id] == attempt
        ]
    return claims_left
