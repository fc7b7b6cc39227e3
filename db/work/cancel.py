"""Stopping a traversal: what has not started is cancelled, and nothing of it comes back to life.

Two sides meet here.  Who stops a traversal cancels its tasks; who puts a claimed task back (parked, or
given back) looks whether the traversal was stopped.  Both hold the task's row while they look, so one of
them sees the other.
"""

import itertools
import typing
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..batches import chunks
from ..ids import MemberId, StackId, TaskId, TraversalId
from ..legacy_finish_tasks import IS_TASK
from ..schema import tables
from ..states import UNSTARTED, Standing, Status, TaskState, stopped_reason
from . import breakpoint_rules, transitions

BEGUN = (TaskState.PARKED, TaskState.READY)

ASK_AGAIN = 1.0
"""Seconds after which a conductor that has not answered is asked to stop once more."""
ASK_RARELY = 10.0
"""The same, once the task has been taken away from it."""
MARGIN = 0.5
"""Seconds, past the moment at which a conductor gives a step up by itself, after which the owner does it."""


@dataclass(frozen=True)
class CarryOver:
    """A traversal that takes tasks over from the one it supersedes.

    :ivar wanted: tasks that have begun and do what is still wanted.  Its plan counts them, see tasks.inherit.
    """

    traversal: TraversalId
    wanted: Collection[TaskId] = ()


def cancel_unstarted(
    conn: Connection, stack_id: StackId, traversal: TraversalId, *, now: float, heir: CarryOver | None = None
) -> list[TaskId]:
    """Cancel what no conductor works on now; the tasks that the heir has taken over instead.

    For one who has superseded the traversal or ended its stack in this transaction: also the rows of
    running tasks are locked, so that one which is being parked or given back at this moment is either seen
    here as it is afterwards, or sees there that the traversal was stopped.

    A resource whose action had begun (its task is parked, or waits for its next try) is shown as FAILED.
    One that was held at a breakpoint is as it was; of one that was held behind its deletion the row goes.
    """
    t = tables.task
    # Also what runs for it under an older traversal, see put_back.
    adopted = sa.and_(
        t.c.stack_id == stack_id, t.c.state == TaskState.RUNNING, t.c.standing == Standing.CARRIED_OVER
    )
    known = sa.and_(t.c.traversal == traversal, t.c.state.in_(sorted({*UNSTARTED, TaskState.RUNNING})))
    rows = _locked(conn, conn.execute(_found(known)).scalars(), conn.execute(_found(adopted)).scalars())
    taken = [row.id for row in rows if heir is not None and row.id in heir.wanted and row.state in BEGUN]
    if heir is not None:
        for part in chunks(taken):
            conn.execute(sa.update(t).where(t.c.id.in_(part)).values(traversal=heir.traversal, losses=None))
    _cancel(conn, [row for row in rows if row.id not in set(taken)], now=now)
    return [TaskId(task_id) for task_id in taken]


def cancel_behind_failure(conn: Connection, traversal: TraversalId, *, now: float) -> int:
    """As cancel_unstarted, for one who holds the row of the traversal, with a failure in it.

    Running tasks go on, and so do nested stacks; who parks one of them looks at that row first.

    :returns: by how much the traversal has to be counted down.
    """
    t = tables.task
    known = sa.and_(t.c.traversal == traversal, t.c.state.in_(sorted(UNSTARTED)))
    rows = _locked(conn, conn.execute(_found(known)).scalars())
    return _cancel(conn, [row for row in rows if not waits_for_child(row.waits_on)], now=now)


def waits_for_child(waits_on: str | None) -> bool:
    """Whether a parked task waits for a nested stack: for work that goes on."""
    return waits_on is not None and waits_on.startswith("stack:")


def _found(known: sa.ColumnElement[bool]) -> sa.Select[typing.Any]:
    return sa.select(tables.task.c.id).where(known, IS_TASK)


def _locked(conn: Connection, *found: Iterable[int]) -> list[typing.Any]:
    """The tasks as they are once nobody else changes them.

    Found without locks, then locked by id: InnoDB walks the index of states while it locks, and would miss a
    task that changes its state, and with it its place in the index, at this moment.
    """
    t = tables.task
    columns = (t.c.id, t.c.state, t.c.resource_id, t.c.attempt, t.c.hook, t.c.waits_on)
    rows: list[typing.Any] = []
    for part in chunks(itertools.chain(*found)):
        rows += conn.execute(
            sa.select(*columns).where(t.c.id.in_(part)).order_by(t.c.id).with_for_update()
        ).all()
    return rows


def _cancel(conn: Connection, rows: Iterable[typing.Any], *, now: float) -> int:
    """Cancel those that have not started; how many they are."""
    unstarted = [row for row in rows if row.state in UNSTARTED]
    transitions.cancel(conn, [row.id for row in unstarted])
    deleted = [row.resource_id for row in unstarted if row.hook == breakpoint_rules.POST_DELETE]
    for part in chunks(deleted):
        conn.execute(sa.delete(tables.resource).where(tables.resource.c.id.in_(part)))
    show_aborted(conn, [row.resource_id for row in unstarted if row.attempt > 0], now=now)
    return len(unstarted)


def show_aborted(conn: Connection, resource_ids: Iterable[int | None], *, now: float) -> None:
    """Show those of the resources whose action is in progress as FAILED."""
    r = tables.resource
    for part in chunks(i for i in resource_ids if i is not None):
        conn.execute(
            sa.update(r)
            .where(r.c.id.in_(part), r.c.status == Status.IN_PROGRESS)
            .values(status=Status.FAILED, reason=r.c.action + stopped_reason(""), updated_at=now)
        )


def stopped(
    conn: Connection, traversals: Iterable[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    """Those of the traversals that were superseded, or whose stack has ended; the deletion of a snapshot
    goes on whatever its stack does.

    The caller holds a task of each.
    """
    asked = set(traversals)
    if not asked:
        return set()
    s = tables.stack
    rows = conn.execute(
        sa.select(s.c.id, s.c.traversal).where(
            s.c.id.in_(sorted({stack_id for stack_id, _ in asked})), s.c.status == Status.IN_PROGRESS
        )
    )
    left = asked - {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}
    return left - _deleting_snapshots(conn, left)


def superseded(
    conn: Connection, traversals: Iterable[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    """Those of the traversals that are not their stack's last one, whether that has ended or not.

    The caller holds a task of each.
    """
    asked, s = set(traversals), tables.stack
    if not asked:
        return set()
    rows = conn.execute(
        sa.select(s.c.id, s.c.traversal).where(s.c.id.in_(sorted({stack_id for stack_id, _ in asked})))
    )
    return asked - {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}


def _deleting_snapshots(
    conn: Connection, asked: set[tuple[StackId, TraversalId]]
) -> set[tuple[StackId, TraversalId]]:
    if not asked:
        return set()
    s = tables.snapshot
    rows = conn.execute(
        sa.select(s.c.stack_id, s.c.traversal).where(
            s.c.traversal.in_(sorted({traversal for _, traversal in asked})),
            s.c.status == Status.IN_PROGRESS,
        )
    )
    return {(StackId(stack_id), TraversalId(traversal)) for stack_id, traversal in rows}


def ask_to_stop(conn: Connection, task_ids: Iterable[TaskId], *, now: float, stop_by: float) -> None:
    """Note that the running tasks are to stop; who was asked before keeps the time given then.

    Their owner asks their conductors again until they have ended, and takes them away after `stop_by`.
    """
    t = tables.task
    for part in chunks(task_ids):
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(part), t.c.state == TaskState.RUNNING, t.c.stop_by.is_(None))
            .values(stop_by=stop_by, due_at=min(now + ASK_AGAIN, stop_by + MARGIN))
        )


def expire(conn: Connection, claims: Iterable[tuple[TaskId, int]], *, now: float, grace: float) -> None:
    """Note that the action's own time is over for these running tasks (with attempt).

    Their conductors know that by themselves, so they are not asked.
    """
    t = tables.task
    for task_id, attempt in sorted(claims):
        conn.execute(
            sa.update(t)
            .where(
                t.c.id == task_id,
                t.c.attempt == attempt,
                t.c.state == TaskState.RUNNING,
                t.c.stop_by.is_(None),
            )
            .values(stop_by=now + grace, due_at=now + grace + MARGIN)
        )


def put_off(conn: Connection, claims: Iterable[tuple[TaskId, int]], *, now: float) -> list[TaskId]:
    """For tasks (with attempt) whose conductors are asked again now: when the next time comes; those that
    still have not ended."""
    t = tables.task
    left: list[TaskId] = []
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
            left.append(task_id)
    return left


def answered(conn: Connection, claims: Iterable[tuple[TaskId, int]], member: MemberId) -> None:
    """The member knows that these tasks (with attempt) were taken away from it: it is not asked again."""
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
    """A step that was asked to stop and has not ended.

    :ivar stop_by: when it is, or was, taken away from the conductor.
    """

    resource: str
    member: MemberId
    stop_by: float


def unanswered(conn: Connection, stack_id: StackId) -> list[Unanswered]:
    """Those of a stack."""
    t, r = tables.task, tables.resource
    rows = conn.execute(
        sa.select(r.c.name, t.c.member, t.c.stop_by)
        .join(r, r.c.id == t.c.resource_id)
        .where(t.c.stack_id == stack_id, t.c.stop_by.is_not(None), t.c.member > "")
        .order_by(t.c.id)
    )
    return [Unanswered(name, MemberId(member), stop_by) for name, member, stop_by in rows]
