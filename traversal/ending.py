"""Ending a traversal before its work is done."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..db import endings, stacks, tables, tasks
from ..db.ids import StackId
from ..db.stacks import DueStack
from ..db.states import Status, TaskState


def time_out(conn: Connection, due: DueStack, *, by: str, now: float) -> bool:
    """Fail the stack if its deadline has passed and it still does what it did; whether it was.

    What runs is left to end, or to be stopped by the cancel that the caller sends; its results are still
    recorded on its resources, but start nothing.
    """
    stack = stacks.lock(conn, due.id)
    if stack.traversal != due.traversal or stack.status != Status.IN_PROGRESS:
        return False
    if stack.deadline_at is None or stack.deadline_at > now:
        return False
    tasks.cancel_unstarted(conn, due.traversal, now=now)
    _close(conn, due.id, now=now)
    reason = f"{stack.action.title()} timed out"
    return endings.end_stack(conn, due.id, due.traversal, reason, by=by, now=now) is not None


def _close(conn: Connection, stack_id: StackId, *, now: float) -> None:
    """Let the stack's finish tasks end nothing any more; the purge duty takes them away."""
    t = tables.task
    conn.execute(
        sa.update(t)
        .where(t.c.stack_id == stack_id, t.c.kind == "finish", t.c.state == TaskState.WAITING)
        .values(state=TaskState.CANCELLED, due_at=now + endings.KEEP_TASKS)
    )
