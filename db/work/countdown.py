"""Count-downs of traversals and successors when tasks have reached a final state."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..batches import IDS, chunks
from ..ids import TaskId, TraversalNumber
from ..rows import Task
from ..schema import tables
from ..states import TaskKind, TaskState
from .cancel import cancel_behind_failure


@dataclass(frozen=True)
class FinishedTask:
    """A task, as it was while it ran, that is in a final state now.

    :ivar failure: why it failed; None: it did not fail.
    :ivar aborts: a breakpoint has ended the action, so it is not rolled back.
    """

    task: Task
    failure: str | None = None
    aborts: bool = False

    @property
    def fails(self) -> bool:
        """Return whether its traversal fails with it.

        A task that began for an older goal has an update of the same resource behind it, which sees the
        failure.
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


def count_down(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> list[Task]:
    """Take tasks off the counts of their traversals and successors; return the successors at zero.

    Those still wait.  Their rows are locked, and the caller unblocks, claims or holds them.

    The traversals' rows come first.  While one is locked, nobody else counts down in this traversal, so
    no two transactions lock successors in opposite orders.

    After a failure the task's own traversal starts nothing more: what has not started is cancelled before
    successors are counted down, so none of it can reach zero.  Tasks of a newer traversal may wait for the
    failed task, too, and run.  Only a check continues after a failure: it reports all that is wrong.
    """
    _count_down_traversals(conn, ended)
    for traversal, number in sorted(
        {
            (one.task.traversal, one.task.finish_id)
            for one in ended
            if one.fails and one.task.finish_id and one.task.kind != TaskKind.CHECK
        }
    ):
        traversals.count_cancelled(conn, number, cancel_behind_failure(conn, traversal, now=now))
    counts = Counter(TaskId(successor) for one in ended for successor in one.task.successors)
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
    for one in ended:
        if (number := one.task.finish_id) is not None:
            counts[number] += 1
            if one.fails:
                failures.setdefault(number, one)
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
