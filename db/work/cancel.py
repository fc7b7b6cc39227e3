"""Cancels of a traversal's tasks: unstarted ones end at once, and running ones get cancel requests.

Two transactions may meet here.  One cancels the traversal's tasks.  The other one releases or parks a claimed
task of it, and checks first whether the traversal was cancelled.  Both lock the task's row before they read,
so the second one sees the first, and no cancelled traversal runs on.
"""

import itertools
import typing
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..bulk import chunks
from ..ids import MemberId, ResourceId, StackId, TaskId, TraversalId, WaitsOn
from ..rows import Task
from ..schema import tables
from ..states import (
    DELETING,
    POST_DELETE,
    UNSTARTED,
    Standing,
    Status,
    TaskKind,
    TaskState,
    cancelled_reason,
)
from . import transitions

BEGUN = (TaskState.PARKED, TaskState.READY)

ASK_AGAIN = 1.0
"""Seconds after which a conductor that has not answered gets the next cancel request."""
ASK_RARELY = 10.0
"""The same, once the task was cancelled without its answer."""
MARGIN = 0.5
"""Seconds that the owner waits longer than the conductor itself, before it expires a step."""


@dataclass(frozen=True)
class CarryOver:
    """A traversal that carries over tasks of the one that it supersedes.

    :ivar tasks: tasks that have begun and whose goal the traversal repeats.  Its plan counts them, see
        tasks.inherit.
    """

    traversal: TraversalId
    tasks: Collection[TaskId] = ()


def cancel_unstarted(
    conn: Connection,
    stack_id: StackId,
    traversal: TraversalId,
    *,
    now: float,
    carry_over: CarryOver | None = None,
) -> list[TaskId]:
    """Cancel the tasks that no conductor runs now; return the tasks that the new traversal carries over.

    The caller has superseded the traversal, or ended its stack, in this transaction.  The rows of running
    tasks are locked, too.  So a task that is parked or released at this moment is read here as it is
    afterwards, or its transaction reads that the traversal is over.

    A resource whose action has begun (its task is parked, or waits for a retry) is shown as FAILED.  One
    that is held at a breakpoint stays as it is.  If it is held after its deletion, its row is deleted.

    :param carry_over: the tasks that the new traversal carries over; None: no task.
    """
    t = tables.task
    # Tasks of older traversals that were carried over run for it, too, see carry_over.py.
    adopted = sa.and_(
        t.c.stack_id == stack_id, t.c.state == TaskState.RUNNING, t.c.standing == Standing.CARRIED_OVER
    )
    condition = sa.and_(t.c.traversal == traversal, t.c.state.in_(sorted({*UNSTARTED, TaskState.RUNNING})))
    rows = _locked(
        conn, conn.execute(_ids_where(condition)).scalars(), conn.execute(_ids_where(adopted)).scalars()
    )
    locked_tasks = [
        row.id for row in rows if carry_over is not None and row.id in carry_over.tasks and row.state in BEGUN
    ]
    if carry_over is not None:
        for chunk in chunks(locked_tasks):
            conn.execute(
                sa.update(t).where(t.c.id.in_(chunk)).values(traversal=carry_over.traversal, losses=None)
            )
    _cancel(conn, [row for row in rows if row.id not in set(locked_tasks)], now=now)
    return [TaskId(task_id) for task_id in locked_tasks]


def lock_unstarted(
    conn: Connection, traversals: Iterable[TraversalId], others: Iterable[TaskId] = ()
) -> list[typing.Any]:
    """Lock the tasks of traversals that have not started, and some others; return their rows.

    All are locked in one order, so that two transactions that do so never wait for each other.
    """
    t = tables.task
    condition = sa.and_(t.c.traversal.in_(sorted(traversals)), t.c.state.in_(sorted(UNSTARTED)))
    return _locked(conn, conn.execute(_ids_where(condition)).scalars(), others)


def cancel_behind_failure(conn: Connection, traversal: TraversalId, *, now: float) -> int:
    """Cancel the tasks of a traversal that have not started, because another task has failed.

    The caller has locked them, and then the traversal's row, with a failure in it.  Running tasks end by
    themselves, and so do nested stacks.  Who parks a running task reads that row first: so a task that was
    parked since the caller has locked the others is read here, too.

    :returns: the number of open tasks by which the traversal has to be counted down.
    """
    rows = lock_unstarted(conn, [traversal])
    return _cancel(conn, [row for row in rows if not _waits_for_stack(row.waits_on)], now=now)


def _waits_for_stack(waits_on: str | None) -> bool:
    return waits_on is not None and WaitsOn.parse(waits_on).is_stack


def _ids_where(condition: sa.ColumnElement[bool]) -> sa.Select[typing.Any]:
    return sa.select(tables.task.c.id).where(condition)


def _locked(conn: Connection, *id_lists: Iterable[int]) -> list[typing.Any]:
    """Lock tasks that were found without locks, and return them as they are then.

    InnoDB would walk the index of states while it locks.  It would miss a task that changes its state at this
    moment, and so its place in the index.  So the ids come first, and the locks by id.
    """
    t = tables.task
    columns = (t.c.id, t.c.state, t.c.resource_id, t.c.attempt, t.c.hook, t.c.waits_on)
    rows: list[typing.Any] = []
    for chunk in chunks(itertools.chain(*id_lists)):
        rows += conn.execute(
            sa.select(*columns).where(t.c.id.in_(chunk)).order_by(t.c.id).with_for_update()
        ).all()
    return rows


def _cancel(conn: Connection, rows: Iterable[typing.Any], *, now: float) -> int:
    """Cancel the tasks that have not started; return how many."""
    unstarted = [row for row in rows if row.state in UNSTARTED]
    transitions.cancel(conn, [row.id for row in unstarted])
    deleted = [row.resource_id for row in unstarted if row.hook == POST_DELETE]
    for chunk in chunks(deleted):
        conn.execute(sa.delete(tables.resource).where(tables.resource.c.id.in_(chunk)))
    show_aborted(conn, [row.resource_id for row in unstarted if row.attempt > 0], now=now)
    return len(unstarted)


def show_aborted(conn: Connection, resource_ids: Iterable[ResourceId], *, now: float) -> None:
    """Show the resources whose action is in progress as FAILED."""
    r = tables.resource
    reason = r.c.action + cancelled_reason("")
    values = {"status": Status.FAILED, "reason": reason, "cancelled": True, "updated_at": now}
    for chunk in chunks(resource_ids):
        changed = sa.update(r).where(r.c.id.in_(chunk), r.c.status == Status.IN_PROGRESS)
        conn.execute(changed.values(**values))


LOST = "its conductor is gone"
"""The reason of a resource whose step was lost."""


def show_lost(conn: Connection, lost: Iterable[Task], *, now: float) -> None:
    """Show updates and clean-ups as in progress whose steps were lost: the service may have carried them out.

    Their start is shown by the first result of a step otherwise.  If such a resource stayed COMPLETE with its
    former properties, and the task was cancelled, an update back to these would leave it alone.  A clean-up
    deletes only what was replaced.
    """
    r = tables.resource
    ids: dict[TaskKind, list[int]] = {TaskKind.UPDATE: [], TaskKind.CLEANUP: []}
    for task in lost:
        if task.kind in ids:
            ids[task.kind].append(task.resource_id)
    replaced = {TaskKind.CLEANUP: (r.c.replaced_by.is_not(None),)}
    for kind, resource_ids in ids.items():
        action = "DELETE" if kind in DELETING else kind.upper()
        values = {"action": action, "status": Status.IN_PROGRESS, "reason": LOST, "updated_at": now}
        for chunk in chunks(resource_ids):
            complete = (r.c.id.in_(chunk), r.c.status == Status.COMPLETE, *replaced.get(kind, ()))
            conn.execute(sa.update(r).where(*complete).values(**values))


def stopped(
    conn: Connection, traversals: Iterable[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    """Return the traversals that were superseded, or whose stack has ended.

    A traversal that deletes a single snapshot continues during every action of its stack.  The caller has
    locked a task of each traversal.
    """
    requested = set(traversals)
    s = tables.stack
    rows = conn.execute(
        sa.select(s.c.id, s.c.traversal).where(
            s.c.id.in_(sorted({stack_id for stack_id, _ in requested})), s.c.status == Status.IN_PROGRESS
        )
    )
    unfinished = requested - {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}
    return unfinished - _deleting_snapshots(conn, unfinished)


def superseded(
    conn: Connection, traversals: Iterable[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    """Return the traversals that are not their stack's latest one, whether that has ended or not.

    The caller has locked a task of each traversal.
    """
    requested = set(traversals)
    s = tables.stack
    rows = conn.execute(
        sa.select(s.c.id, s.c.traversal).where(s.c.id.in_(sorted({stack_id for stack_id, _ in requested})))
    )
    return requested - {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}


def _deleting_snapshots(
    conn: Connection, requested: set[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    if not requested:
        return set()
    s = tables.snapshot
    rows = conn.execute(
        sa.select(s.c.stack_id, s.c.traversal).where(
            s.c.traversal.in_(sorted({traversal for _, traversal in requested})),
            s.c.status == Status.IN_PROGRESS,
        )
    )
    return {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}


def ask_to_stop(conn: Connection, task_ids: Iterable[TaskId], *, now: float, stop_by: float) -> None:
    """Store that the running tasks are cancelled; a task that was cancelled before keeps its `stop_by`.

    The owner repeats the cancel request until the steps have ended, and cancels the tasks without an answer
    after `stop_by`.
    """
    t = tables.task
    for chunk in chunks(task_ids):
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(chunk), t.c.state == TaskState.RUNNING, t.c.stop_by.is_(None))
            .values(stop_by=stop_by, due_at=min(now + ASK_AGAIN, stop_by + MARGIN))
        )


def expire(
    conn: Connection, claims: Iterable[tuple[TaskId, int]], *, now: float, grace: float
) -> set[TaskId]:
    """Store that the action's timeout is over for these running tasks (with attempt).

    Their conductors know that by themselves, so they get no cancel request.

    :returns: the tasks for which that was stored.
    """
    t = tables.task
    expired: set[TaskId] = set()
    for task_id, attempt in sorted(claims):
        done = conn.execute(
            sa.update(t)
            .where(
                t.c.id == task_id,
                t.c.attempt == attempt,
                t.c.state == TaskState.RUNNING,
                t.c.stop_by.is_(None),
            )
            .values(stop_by=now + grace, due_at=now + grace + MARGIN)
        )
        if done.rowcount:
            expired.add(task_id)
    return expired


def postpone(conn: Connection, claims: Iterable[tuple[TaskId, int]], *, now: float) -> list[TaskId]:
    """Schedule the next cancel request for tasks (with attempt) whose conductors get one now.

    :returns: the tasks that still have not ended.
    """
    t = tables.task
    postponed: list[TaskId] = []
    for task_id, attempt in sorted(claims):
        done = conn.execute(
            sa.update(t)
            .where(
                t.c.id == task_id,
                t.c.attempt == attempt,
                t.c.member > "",
                t.c.state.in_((TaskState.RUNNING, TaskState.CANCELLED)),
            )
            .values(
                due_at=sa.case(
                    (t.c.state == TaskState.CANCELLED, now + ASK_RARELY),
                    (t.c.stop_by + MARGIN < now + ASK_AGAIN, t.c.stop_by + MARGIN),
                    else_=now + ASK_AGAIN,
                )
            )
        )
        if done.rowcount:
            postponed.append(task_id)
    return postponed


def answered(conn: Connection, claims: Iterable[tuple[TaskId, int]], member: MemberId) -> None:
    """Store that a member has answered for cancelled tasks (with attempt): it gets no more requests."""
    t = tables.task
    for task_id, attempt in sorted(claims):
        conn.execute(
            sa.update(t)
            .where(
                t.c.id == task_id,
                t.c.attempt == attempt,
                t.c.member == member,
                t.c.state == TaskState.CANCELLED,
            )
            .values(member=None, due_at=None)
        )


@dataclass(frozen=True)
class Unanswered:
    """A step that was cancelled and has not ended.

    :ivar stop_by: the instant at which its task is, or was, cancelled without the conductor's answer.
    """

    resource: str
    member: MemberId
    stop_by: float


def unanswered(conn: Connection, stack_id: StackId) -> list[Unanswered]:
    """Return the steps of a stack that were cancelled and have not ended."""
    t = tables.task
    r = tables.resource
    rows = conn.execute(
        sa.select(r.c.name, t.c.member, t.c.stop_by)
        .join(r, r.c.id == t.c.resource_id)
        .where(t.c.stack_id == stack_id, t.c.stop_by.is_not(None), t.c.member > "")
        .order_by(t.c.id)
    )
    return [Unanswered(name, MemberId(member), stop_by) for name, member, stop_by in rows]
