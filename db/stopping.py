"""Stopping a traversal: what has not started is cancelled, and nothing of it comes back to life.

Two sides meet here.  Who stops a traversal cancels its tasks; who puts a claimed task back (parked, or
given back) looks whether the traversal was stopped.  Both hold the task's row while they look, so one of
them sees the other.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import breakpoints, tables
from .ids import StackId, TraversalId
from .states import UNSTARTED, Status, TaskKind, TaskState
from .task_rows import chunks


def cancel_unstarted(conn: Connection, traversal: TraversalId, *, now: float) -> int:
    """Cancel what no conductor works on now; how many tasks that were.

    For one who has superseded the traversal or ended its stack in this transaction: also the rows of
    running tasks are locked, so that one which is being parked or given back at this moment is either seen
    here as it is afterwards, or sees there that the traversal was stopped.

    A resource whose action had begun (its task is parked, or waits for its next try) is shown as FAILED.
    One that was held at a breakpoint is as it was; of one that was held behind its deletion the row goes.
    """
    return _cancel(conn, traversal, {*UNSTARTED, TaskState.RUNNING}, now=now)


def cancel_behind_failure(conn: Connection, traversal: TraversalId, *, now: float) -> int:
    """As cancel_unstarted, for one who holds the traversal's finish task with a reason in it.

    Running tasks go on, and are not waited for: who parks one of them looks at the finish task first.
    """
    return _cancel(conn, traversal, UNSTARTED, now=now)


def _cancel(conn: Connection, traversal: TraversalId, locked: Iterable[TaskState], *, now: float) -> int:
    t = tables.task
    # Found without locks, then locked by id: InnoDB walks the index of states while it locks, and would
    # miss a task that changes its state, and with it its place in the index, at this moment.
    found = conn.execute(
        sa.select(t.c.id).where(
            t.c.traversal == traversal, t.c.state.in_(sorted(locked)), t.c.kind != TaskKind.FINISH
        )
    ).scalars()
    count = 0
    for part in chunks(found):
        rows = conn.execute(
            sa.select(t.c.id, t.c.state, t.c.resource_id, t.c.attempt, t.c.hook)
            .where(t.c.id.in_(part))
            .order_by(t.c.id)
            .with_for_update()
        ).all()
        unstarted = [row for row in rows if row.state in UNSTARTED]
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_([row.id for row in unstarted]))
            .values(state=TaskState.CANCELLED, due_at=None, waits_on=None, member=None, hook=None)
        )
        deleted = [row.resource_id for row in unstarted if row.hook == breakpoints.POST_DELETE]
        if deleted:
            conn.execute(sa.delete(tables.resource).where(tables.resource.c.id.in_(deleted)))
        show_aborted(conn, [row.resource_id for row in unstarted if row.attempt > 0], now=now)
        count += len(unstarted)
    return count


def show_aborted(conn: Connection, resource_ids: Iterable[int | None], *, now: float) -> None:
    """Show those of the resources whose action is in progress as FAILED."""
    r = tables.resource
    for part in chunks(i for i in resource_ids if i is not None):
        conn.execute(
            sa.update(r)
            .where(r.c.id.in_(part), r.c.status == Status.IN_PROGRESS)
            .values(status=Status.FAILED, reason=r.c.action + " aborted", updated_at=now)
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
