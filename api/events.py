"""Handlers of events."""

import typing

from ..db import events, stacks
from ..db.errors import NotFound
from ..db.events import Event, EventQuery
from ..db.ids import StackId
from ..db.stacks import Stack
from . import views
from .call import Call, Reply
from .faults import bad_request, not_found

Json = typing.Any
_FILTERS = {
    "resource_action": "action",
    "resource_status": "status",
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "physical_resource_id": "physical_id",
    "uuid": "uuid",
}


def index(call: Call) -> Reply:
    """GET …/events"""
    return _listed(call, None)


def of_resource(call: Call) -> Reply:
    """GET …/resources/NAME/events"""
    return _listed(call, call.path["resource_name"])


def _listed(call: Call, resource_name: str | None) -> Reply:
    stack = call.stack()
    depth = call.number("nested_depth") or 0
    direction = (call.one("sort_dir") or "asc").lower()
    if direction not in ("asc", "desc"):
        raise bad_request(f'sort_dir must be asc or desc, not "{direction}"')
    query = EventQuery(
        stack_id=stack.id,
        nested_depth=depth,
        resource_name=resource_name,
        filters={column: call.many(name) for name, column in _FILTERS.items() if call.many(name)},
        limit=call.limit(),
        marker=call.one("marker"),
        descending=direction == "desc",
    )
    found = call.services.database.read(lambda conn: events.list_events(conn, query))
    homes: dict[str, Stack] = {stack.id: stack}
    shown = []
    for item, stack_name in found:
        view = views.event_summary(call, _home(call, homes, item), item)
        shown.append({**view, "stack_name": stack_name} if depth else view)
    return Reply({"events": shown})


def _home(call: Call, homes: dict[str, Stack], item: Event) -> Stack:
    if item.stack_id not in homes:
        wanted = StackId(item.stack_id)
        homes[wanted] = call.services.database.read(lambda conn: stacks.get(conn, wanted))
    return homes[item.stack_id]


def show(call: Call) -> Reply:
    """GET …/resources/NAME/events/ID"""
    stack, wanted = call.stack(), call.path["event_id"]
    try:
        item = call.services.database.read(lambda conn: events.get(conn, wanted))
    except NotFound as error:
        raise not_found("Event", wanted) from error
    if item.stack_id != stack.id or item.resource_name != call.path["resource_name"]:
        raise not_found("Event", wanted)
    shown = views.event_summary(call, stack, item)
    detail = {"resource_type": item.resource_type, "resource_properties": item.properties or {}}
    return Reply({"event": {**shown, **detail}})
