"""Giving claims back."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..batches import chunks
from ..ids import TaskId, TraversalId
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import REDELIVER_AFTER, TaskState
from . import losses, transitions
from .breakpoints import count_down
from .cancel import ASK_AGAIN, show_aborted
from .carry_over import left_behind
from .countdown import FinishedTask
from .losses import Loss
from .task_rows import by_traversal

Taken = Callable[[Connection, Task], None]


def release(
    conn: Connection,
    seen: Sequence[tuple[TaskId, int]],
    *,
    now: float,
    taken: Taken | None = None,
    loss: Loss | None = None,
) -> ReadyTasks:
    """Give back claims (task, attempt) whose conductor cannot work on them any more.

    The next claim raises the attempt, so a late result of the old one is refused.  A task of a traversal
    that was superseded, or whose stack has ended, is cancelled instead, and what waits for its end goes on.

    :param taken: the conductor may still be at it: told of each task that is cancelled here, which keeps its
        conductor's name until that has answered.
    :param loss: the conductor died or went silent: it is counted for the tasks that go on.
    :returns: the tasks made ready, by traversal.
    """
    t = tables.task
    attempts = dict(seen)
    freed = ReadyTasks()
    for part in chunks(attempts):
        rows = conn.execute(
            sa.select(t)
            .where(t.c.id.in_(part), t.c.state == TaskState.RUNNING)
            .order_by(t.c.id)
            .with_for_update()
        ).mappings()
        found = [task for task in (Task.of(dict(row)) for row in rows) if task.attempt == attempts[task.id]]
        over = left_behind(conn, found)
        if loss is not None:
            losses.count(conn, [task for task in found if task.id not in over], loss)
        ended = [task for task in found if task.id in over]
        others = [task for task in found if task.id not in over]
        transitions.release(conn, [task.id for task in others], due_at=now + REDELIVER_AFTER)
        freed.merge(by_traversal(others))
        for task_id, traversal in _cancel(conn, ended, taken, now=now).items():
            freed.add(traversal, task_id)
    return freed


def _cancel(
    conn: Connection, ended: Sequence[Task], taken: Taken | None, *, now: float
) -> dict[TaskId, TraversalId]:
    """Cancel running tasks; the tasks that became ready by it."""
    if not ended:
        return {}
    ask_at = None if taken is None else now + ASK_AGAIN
    transitions.cancel(conn, [task.id for task in ended], ask_at=ask_at)
    show_aborted(conn, [task.resource_id for task in ended], now=now)
    if taken is not None:
        for task in ended:
            taken(conn, task)
    return count_down(conn, [FinishedTask(task) for task in ended], now=now)
