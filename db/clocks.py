"""A stack's clock, which stands while all that is unfinished is held at breakpoints, or is behind that.

While it stands the deadline is NULL and the seconds that were left are kept: no scan for deadlines finds the
stack, and no duty has to move anything.
"""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables
from .ids import StackId, TaskId, TraversalId
from .states import ACTIVE, Status, TaskState
from .task_rows import Task, chunks

COUNTS = {"clock": "counts"}
"""`hooks` of a finish task whose traversal's deadline counts on."""


def stand(conn: Connection, finish_id: TaskId, *, now: float) -> None:
    """Stop the clock if nothing goes on any more in the traversal of this finish task but some is held.

    Whoever takes the last active task away holds the finish task's row, so that of two who end tasks at once
    the second one sees the first.  Also tasks of older traversals count that still run: what waits for them
    goes on without anybody's doing.
    """
    t, s = tables.task, tables.stack
    row = conn.execute(
        sa.select(t.c.traversal, t.c.stack_id, t.c.held, t.c.hooks).where(t.c.id == finish_id)
    ).first()
    if row is None or row.held <= 0 or row.hooks == COUNTS:
        return
    active = sa.select(t.c.id).where(t.c.traversal == row.traversal, t.c.state.in_(sorted(ACTIVE))).limit(1)
    running = sa.select(t.c.id).where(t.c.stack_id == row.stack_id, t.c.state == TaskState.RUNNING).limit(1)
    if conn.execute(active).first() is not None or conn.execute(running).first() is not None:
        return
    conn.execute(
        sa.update(s)
        .where(
            s.c.id == row.stack_id,
            s.c.traversal == row.traversal,
            s.c.status == Status.IN_PROGRESS,
            # One that has passed strikes.
            s.c.deadline_at > now,
        )
        # Some databases see the new deadline in the second assignment: the order is of importance there.
        .ordered_values((s.c.remaining, s.c.deadline_at - now), (s.c.deadline_at, None))
    )


def go_on(conn: Connection, stack_id: StackId, traversal: TraversalId, *, now: float) -> None:
    """Let a clock that stands go on with the time that was left."""
    s = tables.stack
    conn.execute(
        sa.update(s)
        .where(s.c.id == stack_id, s.c.traversal == traversal, s.c.remaining.is_not(None))
        .ordered_values((s.c.deadline_at, s.c.remaining + now), (s.c.remaining, None))
    )


def newer_finishes(conn: Connection, ended: Sequence[Task]) -> set[TaskId]:
    """Finish tasks of newer traversals of which tasks have waited for these, which ran for an older one.

    The ids of a plan are one block of which the finish task's is the last.
    """
    t = tables.task
    newer: Iterable[int] = (
        successor
        for task in ended
        if task.finish_id is not None
        for successor in task.successors
        if successor > task.finish_id
    )
    found: set[TaskId] = set()
    for part in chunks(newer):
        rows = conn.execute(sa.select(t.c.finish_id).where(t.c.id.in_(part)).distinct()).scalars()
        found.update(TaskId(finish_id) for finish_id in rows if finish_id is not None)
    return found
