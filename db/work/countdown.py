"""Count-downs when tasks have reached a final state, and pauses of deadlines while nothing is left to run.

A stack's deadline pauses while a breakpoint holds, or blocks, all unfinished work.  Then `deadline_at` is
NULL and the seconds left are stored.  So no scan for deadlines finds the stack, and no duty has to move its
deadline.

A task that waits for a nested stack with a paused deadline is blocked by a breakpoint, too.  So a transaction
that pauses a child's deadline checks its parent's, up to the root, and one that resumes it resumes theirs.
Both go from the child to the parent.  Who checks whether all children are paused locks their rows.  So of two
transactions, one that resumes a child and one that pauses its parent, the second sees the first.
"""

import typing
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk, notifications, traversals
from ..bulk import OneOf, chunks
from ..ids import StackId, TaskId, TraversalId, TraversalNumber, WaitsOn
from ..rows import FailureCause, ReadyTasks, Task, Traversal
from ..schema import tables
from ..states import ACTIVE, DeadlinePolicy, Standing, Status, TaskKind, TaskState
from . import transitions
from .cancel import cancel_behind_failure, lock_unstarted
from .tasks import AWAITED_STACK, WAITS_FOR_STACK, Locked, by_traversal, lock

POLL_CHILD_AFTER = 300.0
"""Seconds after which a task polls the nested stack that it waits for even if nobody has woken it."""


@dataclass(frozen=True)
class FinishedTask:
    """A task, as it was while it ran, that is in a final state now.

    :ivar failure: why it failed; None: it did not fail.
    :ivar cause: the cause that the failure names.
    :ivar aborts: whether a breakpoint has ended the action, so that nothing is rolled back.
    :ivar is_done: whether its step has ended well.
    """

    task: Task
    failure: str | None = None
    cause: FailureCause | None = None
    aborts: bool = False
    is_done: bool = False

    @property
    def fails(self) -> bool:
        """Return whether its traversal fails with it.

        A task that began for an older goal has an update of the same resource after it, which sees the
        failure.
        """
        return self.failure is not None and (self.aborts or not self.task.inherited)


_COUNT_DOWN = (
    sa.update(tables.task)
    .where(OneOf(tables.task.c.id), tables.task.c.state == TaskState.WAITING)
    .values(pending=tables.task.c.pending - sa.bindparam("by"))
)


def waiting_tasks(ids: str) -> sa.Select[typing.Any]:
    """Return the query that locks those of some tasks that wait for others, in the order of their ids.

    :param ids: the name of the parameter with the ids of the tasks.
    """
    t = tables.task
    is_waiting = sa.and_(OneOf(t.c.id, ids), t.c.state == TaskState.WAITING)
    return sa.select(t).where(is_waiting).order_by(t.c.id).with_for_update()


_WAITING = waiting_tasks("ids")


def count_down(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> list[Task]:
    """Take tasks off the counts of their successors and traversals; return the successors at zero.

    Those still wait.  Their rows are locked, and the caller unblocks, claims or holds them.
    """
    free = count_successors(conn, ended, now=now)
    for number, count in sorted(open_tasks(ended).items()):
        traversals.count_down(conn, number, count)
    return free


def open_tasks(ended: Sequence[FinishedTask]) -> Counter[TraversalNumber]:
    """Return by how much each traversal has to be counted down."""
    return Counter(one.task.finish_id for one in ended if one.task.finish_id is not None)


def lock_successors(conn: Connection, ended: Iterable[Task], locked: Sequence[Task] = ()) -> Sequence[Task]:
    """Lock the tasks that wait for these, in the order of their ids; return them.

    :param locked: those of them that the transaction has locked already.
    """
    ids = {TaskId(successor) for task in ended for successor in task.successors}
    if ids == {task.id for task in locked}:
        return locked
    results = bulk.in_chunks(conn, _WAITING, ids)
    return [Task.of(dict(row)) for rows in results for row in rows.mappings().all()]


def count_successors(
    conn: Connection, ended: Sequence[FinishedTask], *, now: float, locked: Sequence[Task] = ()
) -> list[Task]:
    """Take tasks off the counts of their successors; return those at zero, which still wait.

    Their rows are locked, and the caller unblocks, claims or holds them.  The caller counts down the
    traversals, too, but later: see traversals.py.

    After a failure the task's own traversal starts nothing more: its unstarted tasks are cancelled before
    successors are counted down, so none of them can reach zero.  Tasks of a newer traversal may wait for the
    failed task, too, and run.  Only a check continues after a failure: it reports all that is wrong.

    :param locked: successors that the transaction has locked already.
    """
    for one in ended:
        if one.task.kind == TaskKind.SCALE and (one.is_done or one.failure is not None):
            notifications.scaling_ended(conn, one.task, one.failure)
    if any(one.fails for one in ended):
        _fail_traversals(conn, ended, now=now)
    counts = Counter(TaskId(successor) for one in ended for successor in one.task.successors)
    free: list[Task] = []
    by_count: dict[int, list[TaskId]] = {}
    for task in lock_successors(conn, (one.task for one in ended), locked):
        if is_last(task, counts[task.id]):
            free.append(task)
        else:
            by_count.setdefault(counts[task.id], []).append(task.id)
    for count, ids in sorted(by_count.items()):
        for chunk in chunks(ids):
            conn.execute(*bulk.by_ids(_COUNT_DOWN, {"ids": chunk, "by": count}))
    return free


def is_last(task: Task, ended: int) -> bool:
    """Return whether a waiting task waits for nothing more once so many of its predecessors have ended."""
    return task.pending <= ended


def _fail_traversals(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> None:
    """Store the first failure of each traversal, and cancel its unstarted tasks."""
    failures: dict[TraversalNumber, FinishedTask] = {}
    stopped: dict[TraversalNumber, TraversalId] = {}
    for one in ended:
        if one.fails and one.task.finish_id is not None:
            failures.setdefault(one.task.finish_id, one)
            if one.task.kind != TaskKind.CHECK:
                stopped[one.task.finish_id] = one.task.traversal
    if not failures:
        return
    # All tasks come before all traversals, as they do for who ends tasks well.
    successors = (TaskId(successor) for one in ended for successor in one.task.successors)
    lock_unstarted(conn, stopped.values(), successors)
    for number, one in sorted(failures.items()):
        traversals.fail(conn, number, one.failure or "unknown", one.cause, aborted=one.aborts)
    for number, traversal in sorted(stopped.items()):
        traversals.count_cancelled(conn, number, cancel_behind_failure(conn, traversal, now=now))


def pause_deadline(conn: Connection, number: TraversalNumber, *, now: float) -> None:
    """Pause the stack's deadline if no task of the traversal can run, but some task is held.

    Who ends the last active task holds the traversal's row.  So of two transactions that end tasks at once,
    the second sees the first.  Running tasks of older traversals count as active, because their successors
    run after them.
    """
    s = tables.stack
    traversal = traversals.get(conn, number)
    if traversal is None or not traversal.may_pause or traversal.deadline_policy == DeadlinePolicy.COUNTS:
        return
    if not _rests(conn, traversal):
        return
    done = conn.execute(
        sa.update(s)
        .where(
            s.c.id == traversal.stack_id,
            s.c.traversal == traversal.traversal,
            s.c.status == Status.IN_PROGRESS,
            # A deadline that has passed is not paused: the stack times out.
            s.c.deadline_at > now,
        )
        # MariaDB reads the new deadline in the second assignment, so the order matters there.
        .ordered_values((s.c.remaining, s.c.deadline_at - now), (s.c.deadline_at, None))
    )
    if done.rowcount:
        pause_parents(conn, [task.id for task in _waiting_for(conn, traversal.stack_id)], now=now)


def pause_parents(conn: Connection, parked: Iterable[TaskId], *, now: float) -> None:
    """Pause the deadlines of stacks whose tasks wait for paused nested stacks, where nothing else runs.

    Nobody has to poll these tasks meanwhile.  The caller holds their rows.
    """
    t = tables.task
    numbers = set[TraversalNumber]()
    for chunk in chunks(parked):
        # The time for which the child is paused is no part of the resource's timeout.
        conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(due_at=None, expires_at=None))
        finish_ids = conn.execute(sa.select(t.c.finish_id).where(t.c.id.in_(chunk))).scalars()
        numbers |= {TraversalNumber(number) for number in finish_ids if number is not None}
    for number in sorted(numbers):
        traversals.note_paused_child(conn, number)
        pause_deadline(conn, number, now=now)


def _waiting_for(conn: Connection, stack_id: StackId) -> Sequence[typing.Any]:
    """Return the parked tasks that wait for a stack, and lock their rows."""
    t = tables.task
    return conn.execute(
        sa.select(t.c.id, t.c.finish_id, t.c.stack_id, t.c.traversal, t.c.timeout)
        .where(t.c.waits_on == str(WaitsOn.stack(stack_id)), t.c.state == TaskState.PARKED)
        .order_by(t.c.id)
        .with_for_update()
    ).all()


def _rests(conn: Connection, traversal: Traversal) -> bool:
    """Return whether a traversal, with the nested stacks it waits for, has held tasks and nothing to run."""
    t = tables.task
    s = tables.stack
    for_child = sa.and_(t.c.state == TaskState.PARKED, WAITS_FOR_STACK)
    of_it = t.c.traversal == traversal.traversal
    active = sa.select(t.c.id).where(of_it, t.c.state.in_(sorted(ACTIVE)), sa.not_(for_child))
    # Nothing waits for the deletion of a single snapshot, but the stack's deletion takes it over.
    deletes_snapshot = sa.and_(t.c.kind == TaskKind.DELETE_SNAPSHOT, t.c.standing == Standing.OWN)
    running = sa.select(t.c.id).where(
        t.c.stack_id == traversal.stack_id,
        t.c.state == TaskState.RUNNING,
        t.c.kind != TaskKind.SIGNAL,
        sa.not_(deletes_snapshot),
    )
    if conn.execute(active.limit(1)).first() is not None:
        return False
    if conn.execute(running.limit(1)).first() is not None:
        return False
    is_awaited = s.c.id == AWAITED_STACK
    child = sa.select(s.c.id).join(t, is_awaited).where(of_it, for_child)
    # Most often one of them is not paused, and then none has to be locked.
    if conn.execute(child.where(s.c.remaining.is_(None)).limit(1)).first() is not None:
        return False
    children = conn.execute(child).scalars().all()
    for chunk in chunks(children):
        locked = sa.select(s.c.remaining).where(s.c.id.in_(chunk)).order_by(s.c.id).with_for_update()
        if None in conn.execute(locked).scalars().all():
            return False
    return traversal.held_tasks > 0 or bool(children)


def resume_deadline(conn: Connection, stack_id: StackId, traversal: TraversalId, *, now: float) -> None:
    """Resume a paused deadline with the seconds left, and those of the stacks around it."""
    s = tables.stack
    t = tables.task
    done = conn.execute(
        sa.update(s)
        .where(s.c.id == stack_id, s.c.traversal == traversal, s.c.remaining.is_not(None))
        .ordered_values((s.c.deadline_at, s.c.remaining + now), (s.c.remaining, None))
    )
    for task in _waiting_for(conn, stack_id) if done.rowcount else ():
        expires_at = None if task.timeout is None else now + task.timeout
        due_at = now + (POLL_CHILD_AFTER if task.timeout is None else min(POLL_CHILD_AFTER, task.timeout))
        conn.execute(sa.update(t).where(t.c.id == task.id).values(due_at=due_at, expires_at=expires_at))
        resume_deadline(conn, StackId(task.stack_id), TraversalId(task.traversal), now=now)


def wake(conn: Connection, parked: Sequence[Locked], *, now: float) -> ReadyTasks:
    """Let parked tasks be claimed, whose rows the caller has locked; return them by traversal, for hints.

    A nested stack may have ended while its deadline was paused, and its parent's with it: so the deadlines of
    the tasks' stacks resume.
    """
    transitions.wake(conn, [row.id for row in parked], now=now)
    for stack_id, traversal in sorted({(row.stack_id, row.traversal) for row in parked}):
        resume_deadline(conn, stack_id, traversal, now=now)
    return by_traversal(parked)


def wake_parents(conn: Connection, stack_ids: Collection[StackId], *, now: float) -> ReadyTasks:
    """Wake the tasks that wait for nested stacks, which have ended; return them by traversal, for hints."""
    t = tables.task
    awaited = sorted(str(WaitsOn.stack(stack_id)) for stack_id in stack_ids)
    waiting = sa.and_(t.c.waits_on.in_(awaited), t.c.state == TaskState.PARKED)
    return wake(conn, lock(conn, waiting), now=now)


def newer_traversals(conn: Connection, ended: Sequence[Task]) -> set[TraversalNumber]:
    """Return newer traversals of which tasks have waited for these, which ran for an older one.

    Only a task that was running when its traversal was superseded, or that a newer one carries over, has
    successors in another traversal than its own.
    """
    t = tables.task
    newer = (successor for task in ended if task.standing != Standing.OWN for successor in task.successors)
    numbers: set[TraversalNumber] = set()
    for chunk in chunks(newer):
        rows = conn.execute(sa.select(t.c.finish_id).where(t.c.id.in_(chunk)).distinct()).scalars()
        numbers.update(TraversalNumber(number) for number in rows if number is not None)
    return numbers - {task.finish_id for task in ended}
