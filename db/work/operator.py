"""What the operator does to tasks that are stuck: each is the duty's own move, made before its moment."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..ids import TaskId, TraversalId
from ..schema import tables
from ..states import TaskState
from . import tasks
from .task_rows import chunks, lock_many, set_ready


def hint_anew(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TraversalId, list[TaskId]]:
    """Begin the repetitions of the hints of ready tasks anew; those still ready, to be sent now."""
    return set_ready(conn, lock_many(conn, task_ids, TaskState.READY), now=now)


def wake(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TraversalId, list[TaskId]]:
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
