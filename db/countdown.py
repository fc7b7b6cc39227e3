"""Counting down: what becomes ready, and what can end, when tasks reach a final state."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables
from .ids import TaskId, TraversalId
from .states import TaskState
from .stopping import cancel_behind_failure
from .task_rows import REDELIVER_AFTER, Task, chunks


@dataclass(frozen=True)
class Final:
    """A task, as it was while it ran, that is in a final state now.

    :ivar failure: first cause; None: it did not fail.
    """

    task: Task
    failure: str | None = None


def count_down(conn: Connection, ended: Sequence[Final], *, now: float) -> dict[TaskId, TraversalId]:
    """Take the tasks off the counts of their finish tasks and successors; the tasks that became ready.

    The finish task comes first: while its row is held, nobody else counts down in this traversal, so the
    successors cannot be locked in opposite orders.

    A failed task's own traversal starts nothing more (its unstarted tasks are cancelled first), yet tasks
    of a newer traversal may wait for it too.
    """
    _count_down_finish(conn, ended)
    for traversal, finish_id in sorted(
        {(f.task.traversal, f.task.finish_id) for f in ended if f.failure is not None and f.task.finish_id}
    ):
        _take_off(conn, finish_id, cancel_behind_failure(conn, traversal, now=now))
    counts = Counter(TaskId(successor) for final in ended for successor in final.task.successors)
    by_count: dict[int, list[TaskId]] = {}
    for task_id, count in counts.items():
        by_count.setdefault(count, []).append(task_id)
    t = tables.task
    for count, ids in sorted(by_count.items()):
        for part in chunks(ids):
            conn.execute(
                sa.update(t)
                .where(t.c.id.in_(part), t.c.state == TaskState.WAITING)
                .values(pending=t.c.pending - count)
            )
    return make_ready(conn, counts, now=now)


def _count_down_finish(conn: Connection, ended: Sequence[Final]) -> None:
    counts: Counter[TaskId] = Counter()
    failures: dict[TaskId, str] = {}
    for final in ended:
        if (finish_id := final.task.finish_id) is not None:
            counts[finish_id] += 1
            if final.failure is not None:
                failures.setdefault(finish_id, final.failure)
    for finish_id, count in sorted(counts.items()):
        _take_off(conn, finish_id, count, failures.get(finish_id))


def _take_off(conn: Connection, finish_id: TaskId, count: int, failure: str | None = None) -> None:
    t = tables.task
    change = sa.update(t).where(t.c.id == finish_id).values(pending=t.c.pending - count)
    if failure is not None:
        change = change.values(reason=sa.func.coalesce(t.c.reason, sa.literal(failure, t.c.reason.type)))
    conn.execute(change)


def make_ready(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TaskId, TraversalId]:
    """Turn those of the tasks whose predecessors have all ended from waiting to ready."""
    t = tables.task
    ready: dict[TaskId, TraversalId] = {}
    for part in chunks(task_ids):
        found = conn.execute(
            sa.select(t.c.id, t.c.traversal)
            .where(t.c.id.in_(part), t.c.state == TaskState.WAITING, t.c.pending <= 0)
            .order_by(t.c.id)
        ).all()
        if not found:
            continue
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_([task_id for task_id, _ in found]), t.c.state == TaskState.WAITING)
            .values(state=TaskState.READY, due_at=now + REDELIVER_AFTER)
        )
        ready.update((TaskId(task_id), TraversalId(traversal)) for task_id, traversal in found)
    return ready
