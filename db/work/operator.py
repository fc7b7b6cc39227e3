"""What the operator does to tasks that are stuck: each is the duty's own move, made before its moment."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..batches import chunks
from ..ids import TaskId
from ..rows import ReadyTasks
from ..schema import tables
from ..states import REDELIVER_AFTER, TaskState
from . import tasks
from .task_rows import by_traversal, lock_many


def restart_hints(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> ReadyTasks:
    """Repeat the hints of ready tasks from the first interval on; return the tasks, to be hinted at now."""
    t, ready = tables.task, lock_many(conn, task_ids, TaskState.READY)
    for part in chunks(row.id for row in ready):
        conn.execute(sa.update(t).where(t.c.id.in_(part)).values(redelivered=0, due_at=now + REDELIVER_AFTER))
    return by_traversal(ready)


def wake(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> ReadyTasks:
    """Make parked tasks ready, whatever they wait for: their steps look at it; those that were parked."""
    return tasks.wake_locked(conn, lock_many(conn, task_ids, TaskState.PARKED), now=now)


def still_claimed(conn: Connection, claims: Sequence[tuple[TaskId, int]]) -> list[tuple[TaskId, int]]:
    """Those of the claims (task, attempt) that hold; nobody changes them until the transaction ends."""
    t, attempts = tables.task, dict(claims)
    found: list[tuple[TaskId, int]] = []
    for part in chunks(attempts):
        rows = conn.execute(
            sa.select(t.c.id, t.c.attempt)
            .where(t.c.id.in_(part), t.c.state == TaskState.RUNNING)
            .order_by(t.c.id)
            .with_for_update()
        )
        found += [(TaskId(task_id), attempt) for task_id, attempt in rows if attempts[task_id] == attempt]
    return found
