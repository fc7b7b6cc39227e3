"""Signals to resources, and marking them unhealthy."""

import logging
import typing

from ..db import events, resources
from ..db.errors import NotFound
from ..db.ids import ResourceId, WaitsOn
from ..db.rows import Event, ReadyTasks, Resource, Stack
from ..db.software import OwningResource
from ..db.states import Status
from ..db.work import due_tasks
from ..resources.contract.errors import NoAction, NotSupported
from ..resources.contract.signals import Adjustment, Signal
from ..shapes import Json, JsonMap
from .context import EngineContext, announce
from .deployment_results import store_result, wake_waiting
from .errors import ActionInProgress, AmbiguousId, NotAvailable, ResourceReplaced
from .scaling import ScalingRequest, begin_refreshes, begin_request, scale
from .stored_resource import metadata_changed

LOG = logging.getLogger(__name__)
TRIES = 10
NO_REASON = "state changed by resource_mark_unhealthy api"
SIGNALLED = ("SIGNAL", Status.COMPLETE)
"""Action and status of the event of a signal."""
DEAF = ("DELETE", "SUSPEND")
"""Last actions of resources that take no signals, unless they wait for outputs."""


def send_signal(
    context: EngineContext, stack: Stack, resource_name: str, details: Json, *, row: ResourceId | None = None
) -> None:
    """Pass the details to the resource, and wake the tasks that wait for it.

    Of two signals at once both are stored: the loser of the compare-and-swap reads the row again.

    :param row: id of the resource, if it must be this one and not another one of the same name.
    :raises NotFound: no such resource.
    :raises ResourceReplaced: another resource has the name now.
    :raises NotAvailable: the resource is not created yet; its first step would overwrite the metadata.
    :raises NotSupported: the type takes no signals, or the resource is deleted or suspended; an event
        says that.
    :raises SignalError: the type cannot use the details.
    :raises LimitExceeded: the details are too large, or the resource keeps too many signals, or too many
        wait to be carried out.
    """
    limits = context.settings.signals
    for _ in range(TRIES):
        resource = context.database.read(lambda conn: resources.by_name(conn, stack.id, resource_name))
        if row not in (None, resource.id):
            raise ResourceReplaced(resource_name)
        if resource.metadata is None or resource.is_untouched:
            raise NotAvailable(resource_name)
        plugin = context.registry.get(resource.plugin)
        limits.check_details(details, is_output=plugin.takes_outputs)
        if resource.action in DEAF and not plugin.takes_outputs:
            _note_refusal(context, stack, resource)
            raise NotSupported(f"Signal resource during {resource.action} is not supported")
        target = context.stored_resource(stack, resource).view()
        signal = plugin.handle_signal(target, details)
        if signal.outputs is not None:
            _store_outputs(context, stack, resource, signal.outputs)
            return
        limits.check_reason(signal.reason)
        if signal.adjustment is not None:
            _scale(context, stack, resource, signal, signal.adjustment)
            return
        if signal.request is not None:
            _begin_request(context, stack, resource, signal.reason, signal.request)
            return
        metadata = metadata_changed(
            resource.metadata, target.metadata, signal.metadata, context.sealer_of(stack).seal
        )
        limits.check_metadata(target.metadata, signal.metadata, metadata)
        if _store(context, stack, resource, metadata, signal.reason):
            # Afterwards, in transactions of their own: a client whose signal was not answered repeats it.
            begin_refreshes(context, stack, resource)
            return
    raise NotSupported(f"Resource {resource_name} gets too many signals at once")


def set_health(context: EngineContext, stack: Stack, name: str, *, unhealthy: bool, reason: str) -> None:
    """Mark a resource as unhealthy, so that the next update replaces it, or as healthy again.

    A resource that is being deleted, and a healthy one that is marked healthy, stay as they are.

    :param name: name of the resource, or else its physical id, or its reference.
    :raises NotFound: no such resource.
    :raises AmbiguousId: several resources have the id.
    :raises LimitExceeded: the reason is too long.
    :raises ActionInProgress: an action on the resource is in progress.
    """
    now = context.clock()
    context.settings.signals.check_reason(reason)

    def change(conn: typing.Any) -> None:
        resource = _named(conn, stack, name)
        if resource.action == "DELETE":
            return
        if resource.status == Status.IN_PROGRESS:
            raise ActionInProgress(stack.name, resource.action)
        if not unhealthy and (resource.action, resource.status) != ("CHECK", Status.FAILED):
            return
        status = Status.FAILED if unhealthy else Status.COMPLETE
        text = reason or NO_REASON
        resources.set_status(
            conn,
            resource.id,
            action="CHECK",
            status=status,
            reason=text,
            now=now,
            unhealthy=unhealthy,
        )
        events.add_many(conn, [_event(stack, resource, ("CHECK", status), text, now)])

    context.database.write(change)


def _note_refusal(context: EngineContext, stack: Stack, resource: Resource) -> None:
    text = f"Cannot signal resource during {resource.action}"
    event = _event(stack, resource, (resource.action, Status(resource.status)), text, context.clock())
    context.database.write(lambda conn: events.add_many(conn, [event]))


def _scale(
    context: EngineContext, stack: Stack, policy: Resource, signal: Signal, adjustment: Adjustment
) -> None:
    event = _event(stack, policy, SIGNALLED, signal.reason, context.clock())
    try:
        scale(context, stack, ScalingRequest(adjustment, event))
    except NoAction as error:
        LOG.info("Signal to resource %s of stack %s changes nothing: %s", policy.name, stack.id, error)


def _begin_request(
    context: EngineContext, stack: Stack, resource: Resource, reason: str, request: JsonMap
) -> None:
    event = _event(stack, resource, SIGNALLED, reason, context.clock())
    begin_request(context, stack, resource.id, request, event)


def _store_outputs(context: EngineContext, stack: Stack, resource: Resource, details: JsonMap) -> None:
    """Store the result of a software deployment, if it waits for one; wake the task that waits for it."""
    now = context.clock()
    owner = OwningResource(resource.id, stack.id, stack.project_id)
    owned = (owner, resource.physical_id or "")

    def change(conn: typing.Any) -> ReadyTasks:
        woken = wake_waiting(conn, resource.id, now)
        reason = store_result(conn, context, owned, details, now)
        if reason is None:
            return ReadyTasks()
        events.add_many(conn, [_event(stack, resource, SIGNALLED, reason, now)])
        return woken

    announce(context.hints, context.database.write(change))


def _store(context: EngineContext, stack: Stack, resource: Resource, metadata: Json, reason: str) -> bool:
    now = context.clock()

    def change(conn: typing.Any) -> ReadyTasks | None:
        if not resources.set_metadata(
            conn, resource.id, generation=resource.generation, metadata=metadata, now=now
        ):
            return None
        events.add_many(conn, [_event(stack, resource, SIGNALLED, reason, now)])
        return due_tasks.wake(conn, WaitsOn.resource(resource.id), now=now)

    woken = context.database.write(change)
    announce(context.hints, woken or ReadyTasks())
    return woken is not None


def _named(conn: typing.Any, stack: Stack, name: str) -> Resource:
    try:
        return resources.by_name(conn, stack.id, name)
    except NotFound:
        living = [row for row in resources.of_stack(conn, stack.id) if row.replaced_by is None]
        rows = [row for row in living if row.physical_id == name]
        rows = rows or [row for row in living if row.reference_id == name]
        if len(rows) > 1:
            raise AmbiguousId(name) from None
        if not rows:
            raise
        return rows[0]


def _event(stack: Stack, resource: Resource, state: tuple[str, Status], reason: str, now: float) -> Event:
    return Event.at_resource(resource, state, reason, now, has_sinks=stack.has_sinks)
