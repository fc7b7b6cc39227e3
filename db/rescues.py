"""What the operator does to tasks that are stuck: each is the duty's own move, made before its moment."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import clocks, tables
from .ids import StackId, TaskId, TraversalId
from .states import TaskState
from .task_rows import REDELIVER_AFTER, chunks


def hint_anew(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TraversalId, list[TaskId]]:
    """Begin the repetitions of the hints of ready tasks anew; those still ready, to be sent now."""
    return _make_ready(conn, task_ids, TaskState.READY, now=now)


def wake(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TraversalId, list[TaskId]]:
    """Make parked tasks ready, whatever they wait for: their steps look at it; those that were parked."""
    return _make_ready(conn, task_ids, TaskState.PARKED, now=now)


def _make_ready(
    conn: Connection, task_ids: Iterable[TaskId], state: TaskState, *, now: float
) -> dict[TraversalId, list[TaskId]]:
    t = tables.task
    found: dict[TraversalId, list[TaskId]] = {}
    stacks: set[tuple[str, str]] = set()
    for part in chunks(task_ids):
        rows = conn.execute(
            sa.select(t.c.id, t.c.traversal, t.c.stack_id)
            .where(t.c.id.in_(part), t.c.state == state)
            .order_by(t.c.id)
            .with_for_update()
        ).all()
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_([row.id for row in rows]))
            .values(state=TaskState.READY, due_at=now + REDELIVER_AFTER, redelivered=0, waits_on=None)
        )
        for row in rows:
            found.setdefault(TraversalId(row.traversal), []).append(TaskId(row.id))
            stacks.add((row.stack_id, row.traversal))
    if state == TaskState.PARKED:
        # One that waits for a nested stack which is held may have let its own stack's clock stand.
        for stack_id, traversal in sorted(stacks):
            clocks.go_on(conn, StackId(stack_id), TraversalId(traversal), now=now)
    return found


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
