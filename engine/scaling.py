"""Scaling a group because of a signal: one task beside what its stack has done, carried out by a conductor.

The task belongs to the stack's last traversal, which has ended; so whatever is begun with the stack
afterwards supersedes it like any unfinished work, and the stack's own status says nothing of it.
"""

import typing
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import events, resources, stacks, traversals
from ..db.errors import NotFound
from ..db.ids import ResourceId, TaskId, TraversalId, TraversalNumber
from ..db.rows import Resource, Stack, Task, Traversal
from ..db.states import FINAL, REDELIVER_AFTER, Status, TaskKind, TaskState, TraversalState
from ..db.work import tasks
from ..planning.task_definition import TaskDefinition
from ..resources.errors import NoAction, NotSupported
from ..resources.nested.base import NestedType
from ..resources.signals import Adjustment
from .announce import announce
from .context import EngineContext
from .resource_view import view_of

Json = typing.Any


@dataclass(frozen=True)
class Wish:
    """A signal's wish.

    :ivar policy: the resource that got the signal.
    :ivar told: the event of the signal.
    """

    policy: Resource
    adjustment: Adjustment
    told: events.Event


def scale(context: EngineContext, stack: Stack, wish: Wish) -> None:
    """Begin to scale the group, once it is committed.

    :raises NotFound: the stack has no such group.
    :raises NotSupported: the resource is no group that can be scaled.
    :raises NoAction: nothing is to be done now.
    """
    rows = context.database.read(lambda conn: resources.of_stack(conn, stack.id))
    wanted = wish.adjustment.group
    found = [row for row in rows if row.replaced_by is None and wanted in (row.physical_id, row.reference_id)]
    if not found:
        raise NotFound("Scaling group", wanted)
    plugin = context.registry.get(found[0].plugin)
    if not isinstance(plugin, NestedType):
        raise NotSupported(f"Resource {found[0].name} of type {found[0].type} cannot be scaled")
    scope = context.scope(stack.id, 2)
    timeout = scope.defaults.timeout or context.timeout(stack.timeout_mins)

    def start(conn: Connection) -> Task:
        current = stacks.lock(conn, stack.id)
        group = _idle(conn, current, found[0].id)
        scaling = plugin.plan_scaling(view_of(context, current, group), wish.adjustment, scope.now)
        task = Task(
            id=TaskId(scope.first_id),
            traversal=current.traversal,
            stack_id=stack.id,
            resource_id=group.id,
            kind=TaskKind.SCALE,
            state=TaskState.READY,
            pending=0,
            shard=scope.shard,
            due_at=scope.now + REDELIVER_AFTER,
            timeout=timeout,
            retries_left=scope.defaults.retries,
            request=scope.request,
            definition=TaskDefinition(
                properties={"size": scaling.size, "cooldown": scaling.cooldown}
            ).to_json(),
        )
        tasks.insert_many(conn, [task])
        traversals.keep(conn, _purged_with(task, TraversalNumber(scope.first_id + 1), scope.now))
        events.add_many(conn, [wish.told])
        return task

    begun = context.database.write(start)
    announce(context.hints, begun.traversal, [begun.id])


def _idle(conn: Connection, stack: Stack, group_id: ResourceId) -> Resource:
    """The group, of a stack whose row is locked.

    :raises NoAction: something is being done to it.
    """
    if stack.status == Status.IN_PROGRESS or stack.action in ("DELETE", "SUSPEND"):
        raise NoAction(f"stack {stack.name} is {stack.action}_{stack.status}")
    group = resources.by_ids(conn, [group_id]).get(group_id)
    if group is None or group.replaced_by is not None or group.status != Status.COMPLETE:
        raise NoAction("the group is not complete")
    others = tasks.of_traversal(conn, TraversalId(stack.traversal))
    if any(task.resource_id == group_id and task.state not in FINAL for task in others):
        raise NoAction("the group is being scaled")
    return group


def _purged_with(task: Task, number: TraversalNumber, now: float) -> Traversal:
    """Return the traversal as it brings the purge; its row may be gone already."""
    return Traversal(
        id=number,
        traversal=task.traversal,
        stack_id=task.stack_id,
        shard=task.shard,
        open_tasks=0,
        state=TraversalState.DONE,
        due_at=now + traversals.KEPT,
    )
