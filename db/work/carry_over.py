"""Claimed tasks that are to wait in the database again, where their traversal was superseded or stopped."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..ids import TaskId
from ..rows import Task
from ..schema import tables
from ..states import TaskKind
from .cancel import stopped, superseded


@dataclass(frozen=True)
class RequeueRequest:
    """What the tasks are to wait for.

    :ivar begun: whether a task's action will have begun, where that changes now.
    :ivar done: those whose action has ended: they wait at a breakpoint behind it.
    :ivar nested: those that wait for nested stacks, which go on where another task has failed.
    """

    begun: Mapping[TaskId, bool] = field(default_factory=dict)
    done: Collection[TaskId] = ()
    nested: Collection[TaskId] = ()


def requeue(conn: Connection, claimed: Sequence[Task], wishes: RequeueRequest) -> set[TaskId]:
    """Claimed tasks are to wait in the database again: those of them that have to be cancelled instead, for
    their traversal was stopped, or is one in which a task failed.

    One that runs for the stack's present traversal, though its own was superseded, becomes that one's own:
    who stops the present one will find it.  The caller holds the tasks, and gets the traversals' rows.
    """
    own = [task for task in claimed if not task.inherited]
    failed = traversals.lock_failed(conn, {task.finish_id for task in own if task.finish_id is not None})
    behind = {task.id for task in own if task.finish_id in failed and task.id not in wishes.nested}
    return behind | left_behind(conn, claimed, wishes)


def left_behind(
    conn: Connection, claimed: Sequence[Task], wishes: RequeueRequest = RequeueRequest()
) -> set[TaskId]:
    """As put_back, but where a task failed others may go on."""
    own = [task for task in claimed if not task.inherited]
    over = stopped(conn, [(task.stack_id, task.traversal) for task in own if task.kind != TaskKind.SCALE])
    over |= superseded(conn, [(task.stack_id, task.traversal) for task in own if task.kind == TaskKind.SCALE])
    ended = {task.id for task in own if (task.stack_id, task.traversal) in over}
    return ended | {task.id for task in claimed if task.inherited and not _moved(conn, task, wishes)}


def _moved(conn: Connection, task: Task, wishes: RequeueRequest) -> bool:
    """Whether there is a traversal that it goes on for, which it belongs to now.

    Only a creation of which is stored what it was given: what it refers to may become something else now; and
    an adoption, which changes nothing: what follows it would replace what was to be adopted.
    """
    t, r = tables.task, tables.resource
    progress = conn.execute(sa.select(r.c.progress).where(r.c.id == task.resource_id)).scalar()
    has_begun = progress is not None and progress["task"] == task.id
    found = traversals.get_running(conn, task.stack_id)
    if found is None or (traversals.lock_failed(conn, [found.id]) and task.id not in wishes.nested):
        return False
    own = task.traversal == found.traversal
    is_begun = task.kind == TaskKind.CREATE and wishes.begun.get(task.id, has_begun)
    if not (is_begun or task.kind == TaskKind.ADOPT):
        return own and task.id in wishes.done
    if own:
        return True
    values = {"traversal": found.traversal, "finish_id": found.id, "losses": None}
    conn.execute(sa.update(t).where(t.c.id == task.id).values(**values))
    traversals.count_up(conn, found.id, 1)
    return True
