"""Claimed tasks that are to wait in the database again, where their traversal was superseded or stopped."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..ids import TaskId, TraversalNumber
from ..rows import Task
from ..schema import tables
from ..states import TaskKind
from .cancel import stopped, superseded


@dataclass(frozen=True)
class RequeueRequest:
    """The reasons for which claimed tasks are to wait in the database again.

    :ivar begun: whether a task's action will have begun, where that changes now.
    :ivar done: tasks whose action has ended, and that wait at a breakpoint after it.
    :ivar nested: tasks that wait for nested stacks, which run on where another task has failed.
    :ivar counted: traversals that the transaction counts down later; None: any.
    """

    begun: Mapping[TaskId, bool] = field(default_factory=dict)
    done: Collection[TaskId] = ()
    nested: Collection[TaskId] = ()
    counted: Collection[TraversalNumber | None] | None = None


def stopped_tasks(conn: Connection, claimed: Sequence[Task], request: RequeueRequest) -> set[TaskId]:
    """Return the claimed tasks that must be cancelled instead of waiting in the database again.

    Their traversal was stopped, or a task of it has failed.  A carried-over task moves to the stack's present
    traversal, so that who stops that one finds it.  The caller has locked the tasks; this locks the
    traversals.
    """
    # A check reports all that is wrong, so none of its tasks ends because another one failed.
    of_traversal = [task for task in claimed if not task.inherited and task.kind != TaskKind.CHECK]
    numbers = {task.finish_id for task in of_traversal if task.finish_id is not None}
    # Who only parks tasks of a traversal must not wait for others that do the same until their commits.
    shared = () if request.counted is None else numbers - set(request.counted)
    failed = traversals.lock_failed(conn, numbers, shared)
    dependents = {
        task.id for task in of_traversal if task.finish_id in failed and task.id not in request.nested
    }
    return dependents | superseded_tasks(conn, claimed, request)


def superseded_tasks(
    conn: Connection, claimed: Sequence[Task], request: RequeueRequest = RequeueRequest()
) -> set[TaskId]:
    """Return the claimed tasks whose traversal was stopped or superseded, so that they must be cancelled.

    Unlike `stopped_tasks` it lets tasks run on where another task of their traversal has failed.
    """
    of_traversal = [task for task in claimed if not task.inherited and task.kind != TaskKind.SIGNAL]
    # A group may scale while steps of an action that has ended still run: it has the action's traversal, too.
    actions = [task for task in of_traversal if task.kind != TaskKind.SCALE]
    scalings = [task for task in of_traversal if task.kind == TaskKind.SCALE]
    ended = set[TaskId]()
    for tasks, find_over in ((actions, stopped), (scalings, superseded)):
        over = find_over(conn, [(task.stack_id, task.traversal) for task in tasks]) if tasks else set()
        ended |= {task.id for task in tasks if (task.stack_id, task.traversal) in over}
    return ended | {task.id for task in claimed if task.inherited and not _moved(conn, task, request)}


def _moved(conn: Connection, task: Task, request: RequeueRequest) -> bool:
    """Move a carried-over task to the stack's present traversal; return False if none can carry it on.

    Two kinds of tasks move.  A creation moves once its properties are stored, because the values that it
    refers to may change now.  An adoption changes nothing, and the update after it would replace the object.
    """
    t = tables.task
    r = tables.resource
    progress = conn.execute(sa.select(r.c.progress).where(r.c.id == task.resource_id)).scalar()
    has_begun = progress is not None and progress["task"] == task.id
    running = traversals.get_running(conn, task.stack_id)
    if running is None or (traversals.lock_failed(conn, [running.id]) and task.id not in request.nested):
        return False
    is_current = task.traversal == running.traversal
    is_begun = task.kind == TaskKind.CREATE and request.begun.get(task.id, has_begun)
    if not (is_begun or task.kind == TaskKind.ADOPT):
        return is_current and task.id in request.done
    if is_current:
        return True
    values = {"traversal": running.traversal, "finish_id": running.id, "losses": None}
    conn.execute(sa.update(t).where(t.c.id == task.id).values(**values))
    traversals.count_up(conn, running.id, 1)
    return True
