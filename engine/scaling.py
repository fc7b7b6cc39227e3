"""Tasks that signals begin, outside of the stack's actions: the scaling of a group, and requests to services.

A scaling belongs to the stack's last traversal, which has ended.  So the stack's next action supersedes it
like any unfinished task, and the stack's own status does not show it.  A request has a traversal of its own,
which nothing supersedes.
"""

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ..db import events, notifications, resources, stacks, traversals
from ..db.errors import NotFound
from ..db.ids import ResourceId
from ..db.notifications import ScalingFact
from ..db.rows import Event, Resource, Stack, Task
from ..db.states import FINAL, Status, TaskKind
from ..db.work import tasks
from ..resources.contract.errors import NoAction, NotSupported
from ..resources.contract.signals import Adjustment
from ..resources.nested.base import NestedType
from ..shapes import JsonMap
from .context import EngineContext, announce
from .planning.action import plan_scaling, plan_signal
from .planning.plan import TraversalScope


@dataclass(frozen=True)
class ScalingRequest:
    """A request that a signal to a scaling policy makes.

    :ivar event: event of the signal, stored with the task.
    """

    adjustment: Adjustment
    event: Event


def scale(context: EngineContext, stack: Stack, request: ScalingRequest) -> None:
    """Store and announce a task that scales the group.

    :raises NotFound: the stack has no such group.
    :raises NotSupported: the resource is no group that can be scaled.
    :raises NoAction: there is nothing to do, or an action is in progress.
    """
    rows = context.database.read(lambda conn: resources.of_stack(conn, stack.id))
    group_id = request.adjustment.group
    policies = [
        row for row in rows if row.replaced_by is None and group_id in (row.physical_id, row.reference_id)
    ]
    if not policies:
        raise NotFound("Scaling group", group_id)
    plugin = context.registry.get(policies[0].plugin)
    if not isinstance(plugin, NestedType):
        raise NotSupported(f"Resource {policies[0].name} of type {policies[0].type} cannot be scaled")
    scope = context.scope(stack.id)
    of_type = scope.type_timeouts.get(policies[0].plugin)
    timeout = scope.defaults.timeout or of_type or context.timeout(stack.timeout_mins)

    def start(conn: Connection) -> Task:
        current = stacks.lock(conn, stack.id)
        group = _idle(conn, current, policies[0])
        adjustment = request.adjustment
        scaling = plugin.plan_scaling(context.stored_resource(current, group).view(), adjustment, scope.now)
        task, ended = plan_scaling(
            current, group.id, (adjustment, scaling), scope, timeout=timeout, keep=traversals.KEPT
        )
        tasks.insert_many(conn, [task])
        traversals.keep(conn, ended)
        events.add_many(conn, [request.event])
        message = f"Start resizing the group {adjustment.group}"
        fact = ScalingFact("start", adjustment.group, adjustment.kind, adjustment.by, scaling.before, message)
        notifications.about_scaling(conn, stack.id, fact)
        return task

    begun = context.database.write(start)
    announce(context.hints, {begun.traversal: [begun.id]})


def begin_request(
    context: EngineContext, stack: Stack, resource_id: ResourceId, request: JsonMap, event: Event
) -> None:
    """Store and announce a task that carries out the request of a signal, also during an action.

    :param event: event of the signal, stored with the task.
    :raises LimitExceeded: too many requests of the resource wait to be carried out.
    """
    timeout = context.settings.defaults.timeout or context.timeout(stack.timeout_mins)

    def start(conn: Connection, scope: TraversalScope) -> Task:
        stacks.lock(conn, stack.id)
        waiting = tasks.unfinished_of(conn, stack.id, resource_id, TaskKind.SIGNAL)
        context.settings.signals.check_requests(waiting)
        task, ended = plan_signal(resource_id, request, scope, timeout=timeout, keep=traversals.KEPT)
        tasks.insert_many(conn, [task])
        traversals.insert(conn, ended)
        events.add_many(conn, [event])
        return task

    begun = context.start_traversal(stack.id, start)
    announce(context.hints, {begun.traversal: [begun.id]})


def begin_refreshes(context: EngineContext, stack: Stack, source: Resource) -> None:
    """Store and announce tasks that read the attributes again which follow the signals to a resource.

    The signal is committed already: a task that waits for its claim reads it, and no other one is needed.
    So a burst of signals makes a few tasks.
    """
    types = context.registry.following_signals
    rows = context.database.read(lambda conn: resources.complete_requiring(conn, source, types))
    timeout = context.settings.defaults.timeout or context.timeout(stack.timeout_mins)
    for resource_id in rows:

        def start(conn: Connection, scope: TraversalScope, row: ResourceId = resource_id) -> Task | None:
            stacks.lock(conn, stack.id)
            if tasks.is_unclaimed(conn, stack.id, row, TaskKind.SIGNAL):
                return None
            task, ended = plan_signal(row, {}, scope, timeout=timeout, keep=traversals.KEPT)
            tasks.insert_many(conn, [task])
            traversals.insert(conn, ended)
            return task

        begun = context.start_traversal(stack.id, start)
        if begun is not None:
            announce(context.hints, {begun.traversal: [begun.id]})


def _idle(conn: Connection, stack: Stack, expected: Resource) -> Resource:
    """Return the group as it is now, of a stack whose row is locked.

    :raises NoAction: an action on it, or on its stack, is in progress.
    """
    if stack.status == Status.IN_PROGRESS or stack.action in ("DELETE", "SUSPEND"):
        raise NoAction(f"stack {stack.name} is {stack.action}_{stack.status}")
    group = resources.by_ids(conn, [expected.id]).get(expected.id)
    if group is None or group.replaced_by is not None or group.status != Status.COMPLETE:
        raise NoAction("the group is not complete")
    others = tasks.of_traversal(conn, stack.traversal)
    if any(task.resource_id == expected.id and task.state not in FINAL for task in others):
        raise NoAction("the group is being scaled")
    return group
