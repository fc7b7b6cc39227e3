"""Ending a traversal before its work is done."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..db import endings, stacks, tables, tasks
from ..db.endings import Ended
from ..db.ids import StackId
from ..db.stacks import DueStack
from ..db.states import Status, TaskState


def time_out(conn: Connection, due: DueStack, *, by: str, now: float) -> bool:
    """As time_out_all, for one stack; whether it was ended."""
    return bool(time_out_all(conn, [due], by=by, now=now))


def time_out_all(conn: Connection, due: Sequence[DueStack], *, by: str, now: float) -> list[Ended]:
    """Fail each of the stacks whose deadline has passed while it still does what it did; those that were.

    What runs is left to end, or to be stopped by the cancel that the caller sends; its results are still
    recorded on its resources, but start nothing.  The caller announces the parents' tasks that were woken.

    :param by: host of the conductor, for the events.
    """
    seen = {stack.id: stack.traversal for stack in due}
    late = [
        stack
        for stack in stacks.lock_due(conn, seen, now)
        if stack.traversal == seen[stack.id] and stack.status == Status.IN_PROGRESS
    ]
    for stack in late:
        tasks.cancel_unstarted(conn, stack.traversal, now=now)
    _close(conn, [stack.id for stack in late], now=now)
    ended = [
        endings.end_stack(
            conn, stack.id, stack.traversal, f"{stack.action.title()} timed out", by=by, now=now
        )
        for stack in late
    ]
    return [end for end in ended if end is not None]


def _close(conn: Connection, stack_ids: Iterable[StackId], *, now: float) -> None:
    """Let the stacks' finish tasks end nothing any more; the purge duty takes them away."""
    t = tables.task
    conn.execute(
        sa.update(t)
        .where(t.c.stack_id.in_(sorted(stack_ids)), t.c.kind == "finish", t.c.state == TaskState.WAITING)
        .values(state=TaskState.CANCELLED, due_at=now + endings.KEEP_TASKS)
    )
