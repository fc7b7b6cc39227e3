"""Starting a traversal: all of its rows in one transaction."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import content, endings, events, resources, sequences, stacks, tasks
from ..db.engine import Database
from ..db.ids import ResourceId, TaskId, TraversalId
from ..db.stacks import Stack
from ..db.states import Status, TaskState
from ..db.tasks import Task
from .compiling import Compiled
from .planning import Plan, Scope, plan_delete


@dataclass(frozen=True)
class Begun:
    """A traversal that was committed.

    :ivar ready: to be announced by hints: its tasks, and those of parents that an empty plan's end woke.
    :ivar superseded: older traversals of which tasks still run: to be told to the conductors.
    :ivar spared: of these tasks those that go on.
    """

    stack: Stack
    ready: list[TaskId]
    superseded: Sequence[TraversalId] = ()
    spared: Sequence[TaskId] = ()


def new_traversal() -> TraversalId:
    """A fresh id."""
    return TraversalId(str(uuid.uuid4()))


def reserve(database: Database, count: int) -> int:
    """The first of so many ids, in a transaction of their own: the sequence's row must not stay locked."""
    return database.write(lambda conn: sequences.reserve(conn, count))


def store_new_stack(conn: Connection, stack: Stack, compiled: Compiled, plan: Plan) -> Begun:
    """Insert a stack with its plan.

    :raises NameTaken: see stacks.insert.
    """
    now = stack.created_at
    stack = replace(
        stack,
        template_id=content.put(conn, compiled.template, now),
        environment_id=content.put(conn, compiled.environment, now),
        files_id=content.put(conn, dict(compiled.files), now),
    )
    stacks.insert(conn, stack)
    started = endings.stack_event(stack, Status.IN_PROGRESS, stack.reason, by=None, now=now)
    events.add_many(conn, [started])
    woken = store_plan(conn, stack, plan, now=now)
    return Begun(stack, [*plan.ready, *woken])


def store_plan(conn: Connection, stack: Stack, plan: Plan, *, now: float) -> list[TaskId]:
    """Insert a plan's rows; one that holds no task ends at once: the parents' tasks which that woke."""
    resources.delete_many(conn, plan.settled)
    resources.insert_many(conn, plan.resources)
    tasks.insert_many(conn, [*plan.tasks, plan.finish])
    ended = endings.finish(conn, plan.finish.id, by=None, now=now) if not plan.tasks else None
    return [] if ended is None else list(ended.woken)


def start_delete(conn: Connection, scope: Scope, *, timeout: float) -> Begun | None:
    """Supersede whatever the stack does with its deletion; None if it is deleted, or is being deleted.

    Work that runs on a resource is asked to stop by the caller; the resource's deletion waits for its end.

    :param timeout: seconds the deletion may take.
    :raises TooFewIds: the stack has more resources than ids were reserved for.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if stack.action == "DELETE" and stack.status != Status.FAILED:
        return None
    reason = "Stack DELETE started"
    begun = stacks.begin(
        conn,
        stack.id,
        seen=stack.traversal,
        traversal=scope.traversal,
        action="DELETE",
        reason=reason,
        deadline_at=scope.now + timeout,
    )
    assert begun, "the row is locked"
    tasks.cancel_unstarted(conn, stack.traversal, now=scope.now)
    running = {task.resource_id: task for task in tasks.running_of_stack(conn, stack.id)}
    awaited = {ResourceId(i): task for i, task in running.items() if i is not None}
    deleting = replace(stack, action="DELETE", traversal=scope.traversal, reason=reason)
    plan = plan_delete(resources.of_stack(conn, stack.id), awaited, scope)
    _wait_for(conn, awaited, plan)
    started = endings.stack_event(deleting, Status.IN_PROGRESS, reason, by=None, now=scope.now)
    events.add_many(conn, [started])
    woken = store_plan(conn, deleting, plan, now=scope.now)
    return Begun(deleting, [*plan.ready, *woken], traversals(running.values()))


def traversals(running: Iterable[Task]) -> list[TraversalId]:
    """Those that the tasks belong to."""
    return sorted({task.traversal for task in running})


def _wait_for(conn: Connection, awaited: dict[ResourceId, Task], plan: Plan) -> None:
    """Make the new tasks successors of the old ones that still run on the same resource."""
    for task in plan.tasks:
        old = awaited.get(task.resource_id) if task.resource_id is not None else None
        if old is not None and old.state == TaskState.RUNNING:
            tasks.set_successors(conn, old.id, [*old.successors, task.id])
