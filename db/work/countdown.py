"""Counting down: what becomes ready, and what can end, when tasks reach a final state."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..batches import IDS, chunks
from ..ids import TaskId, TraversalId, TraversalNumber
from ..rows import Task
from ..schema import tables
from ..states import REDELIVER_AFTER, TaskKind, TaskState
from .cancel import cancel_behind_failure


@dataclass(frozen=True)
class FinishedTask:
    """A task, as it was while it ran, that is in a final state now.

    :ivar failure: first cause; None: it did not fail.
    :ivar aborts: it was a breakpoint that has ended the action, so what is there is not rolled back.
    """

    task: Task
    failure: str | None = None
    aborts: bool = False

    @property
    def fails(self) -> bool:
        """Whether its traversal fails with it.

        One that was begun for an older goal has an update of the same resource behind it, which sees that.
        """
        return self.failure is not None and (self.aborts or not self.task.inherited)


_COUNT_DOWN = (
    sa.update(tables.task)
    .where(tables.task.c.id.in_(IDS), tables.task.c.state == TaskState.WAITING)
    .values(pending=tables.task.c.pending - sa.bindparam("by"))
)
_UNBLOCKED = (
    sa.select(tables.task)
    .where(tables.task.c.id.in_(IDS), tables.task.c.state == TaskState.WAITING, tables.task.c.pending <= 0)
    .order_by(tables.task.c.id)
)
_MARK_READY = (
    sa.update(tables.task)
    .where(tables.task.c.id.in_(IDS), tables.task.c.state == TaskState.WAITING)
    .values(state=TaskState.READY, due_at=sa.bindparam("due"))
)


def unblock(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> list[Task]:
    """Take the tasks off the counts of their traversals and successors.

    The tasks whose last predecessor it was are returned and still wait: the caller, who holds their rows,
    marks them ready, or claims them, or holds them at their breakpoints.

    The traversal's row comes first: while it is held, nobody else counts down in this traversal, so the
    successors cannot be locked in opposite orders.

    A failed task's own traversal starts nothing more (its unstarted tasks are cancelled first), yet tasks
    of a newer traversal may wait for it too.  Only a check goes on: it shall find all that is wrong.
    """
    _count_down_traversals(conn, ended)
    for traversal, number in sorted(
        {
            (final.task.traversal, final.task.finish_id)
            for final in ended
            if final.fails and final.task.finish_id and final.task.kind != TaskKind.CHECK
        }
    ):
        traversals.count_cancelled(conn, number, cancel_behind_failure(conn, traversal, now=now))
    counts = Counter(TaskId(successor) for final in ended for successor in final.task.successors)
    by_count: dict[int, list[TaskId]] = {}
    for task_id, count in counts.items():
        by_count.setdefault(count, []).append(task_id)
    for count, ids in sorted(by_count.items()):
        for part in chunks(ids):
            conn.execute(_COUNT_DOWN, {"ids": part, "by": count})
    return _unblocked(conn, counts)


def _count_down_traversals(conn: Connection, ended: Sequence[FinishedTask]) -> None:
    counts: Counter[TraversalNumber] = Counter()
    failures: dict[TraversalNumber, FinishedTask] = {}
    for final in ended:
        if (number := final.task.finish_id) is not None:
            counts[number] += 1
            if final.fails:
                failures.setdefault(number, final)
    for number, count in sorted(counts.items()):
        failed = failures.get(number)
        if failed is None:
            traversals.count_down(conn, number, count)
        else:
            traversals.count_down(conn, number, count, failure=failed.failure, aborted=failed.aborts)


def _unblocked(conn: Connection, task_ids: Iterable[TaskId]) -> list[Task]:
    return [
        Task.of(dict(row))
        for part in chunks(task_ids)
        for row in conn.execute(_UNBLOCKED, {"ids": part}).mappings()
    ]


def mark_ready(conn: Connection, tasks: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    """Turn waiting tasks without predecessors to ready."""
    for part in chunks(task.id for task in tasks):
        conn.execute(_MARK_READY, {"ids": part, "due": now + REDELIVER_AFTER})
    return {task.id: task.traversal for task in tasks}


def make_ready(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TaskId, TraversalId]:
    """Turn those of the tasks whose predecessors have all ended from waiting to ready, past breakpoints."""
    return mark_ready(conn, _unblocked(conn, task_ids), now=now)
