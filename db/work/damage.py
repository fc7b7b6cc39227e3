"""Tasks that this release cannot read: their stack's action ends, and the other stacks continue.

Nothing of the rows is read but ids and words, for anything else in them may be damaged.
"""

from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import events, traversals
from ..ids import StackId, TaskId
from ..rows import Event, FailureCause
from ..schema import tables
from ..states import FINAL, Status
from . import transitions


def end_stack_of(
    conn: Connection, task_id: TaskId, why: str, *, by: str | None, now: float
) -> StackId | None:
    """End the action of a task's stack as FAILED; return the stack, None: the task has ended meanwhile.

    :param why: the damage, in words.
    :param by: host of the conductor, for the event.
    """
    t = tables.task
    s = tables.stack
    row = conn.execute(
        sa.select(s.c.id, s.c.name, s.c.action, s.c.has_sinks, t.c.traversal)
        .join(t, t.c.stack_id == s.c.id)
        .where(t.c.id == task_id, t.c.state.not_in(sorted(FINAL)))
        .with_for_update()
    ).first()
    if row is None:
        return None
    reason = f"Task {task_id} cannot be read: {why}"
    is_current = sa.and_(s.c.id == row.id, s.c.traversal == row.traversal, s.c.status == Status.IN_PROGRESS)
    failing = (
        sa.update(s)
        .where(is_current)
        .values(
            status=Status.FAILED,
            reason=reason,
            failure_cause=asdict(FailureCause(reason)),
            deadline_at=None,
            remaining=None,
            rollback_at=None,
        )
    )
    has_failed = conn.execute(failing).rowcount == 1
    unfinished = sa.select(t.c.id).where(t.c.traversal == row.traversal, t.c.state.not_in(sorted(FINAL)))
    transitions.cancel(conn, conn.execute(unfinished.order_by(t.c.id)).scalars().all())
    if has_failed:
        traversals.close(conn, [row.id], now=now)
        end = Event(
            stack_id=row.id,
            resource_name=row.name,
            resource_type="OS::Heat::Stack",
            physical_id=row.id,
            action=row.action,
            status=Status.FAILED,
            reason=reason,
            at=now,
            has_sinks=row.has_sinks,
            conductor=by,
        )
        events.add_many(conn, [end])
    return StackId(row.id)
