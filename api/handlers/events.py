"""Handlers of events."""

import dataclasses
import typing

from ...db import events
from ...db.errors import NotFound
from ...db.events import EventQuery
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.rows import Stack
from ..errors import Fault, bad_request, not_found
from ..request import Reply, Request, shortened
from ..views import stacks

Json = typing.Any
_FILTERS = {
    "resource_action": "action",
    "resource_status": "status",
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "physical_resource_id": "physical_id",
    "uuid": "uuid",
}

SORT_KEYS = (
    "event_time",
    "created_at",
    "id",
    "resource_name",
    "logical_resource_id",
    "physical_resource_id",
    "resource_status",
    "resource_status_reason",
    "links",
)
"""What the client sends along when it sorts; events always come in the order of time."""


def index(call: Request) -> Reply:
    """GET …/events"""
    return _listed(call, None)


def of_resource(call: Request) -> Reply:
    """GET …/resources/NAME/events"""
    return _listed(call, call.path["resource_name"])


def _listed(call: Request, resource_name: str | None) -> Reply:
    stack, query = call.stack(), _query(call, resource_name)
    query = dataclasses.replace(query, stack_id=stack.id)
    found = call.services.database.read(lambda conn: events.list_events(conn, query))
    if resource_name is not None and not found and not query.marker and not query.filters:
        raise Fault(404, "HTTPNotFound", f"No events found for resource {resource_name}")
    ids = {item.stack_id for item, _ in found}
    homes = call.services.database.read(lambda conn: stack_list.get_many(conn, ids))
    shown = []
    for item, stack_name in found:
        if item.stack_id not in homes:  # Purged meanwhile.
            continue
        view = stacks.event_summary(call, homes[item.stack_id], item)
        shown.append(_below(call, stack, stack_name, view) if query.nested_depth else view)
    return Reply({"events": shown})


def _below(call: Request, root: Stack, stack_name: str, view: Json) -> Json:
    """An event of a tree: without the link to the root, the client asks for each stack's events itself."""
    link = stacks.link(stacks.stack_url(call, root), "root_stack")
    return {**view, "stack_name": stack_name, "links": [*view["links"], link]}


def _query(call: Request, resource_name: str | None) -> EventQuery:
    for key in call.parts("sort_keys"):
        if key not in SORT_KEYS:
            raise bad_request(f'Invalid sort key "{shortened(key)}", the keys are: {", ".join(SORT_KEYS)}')
    filters = {column: call.values(name) for name, column in _FILTERS.items() if call.values(name)}
    return EventQuery(
        stack_id=StackId(call.path["stack_id"]),
        nested_depth=call.number("nested_depth") or 0,
        resource_name=resource_name,
        filters=filters,
        limit=call.limit(),
        marker=_marker(call),
        descending=call.direction() == "desc",
    )


def _marker(call: Request) -> str | None:
    marker = call.one("marker")
    if not marker:
        return None
    try:
        item = call.services.database.read(lambda conn: events.get(conn, marker))
        home = call.services.database.read(lambda conn: stack_list.get_listed(conn, item.stack_id))
    except NotFound:
        home = None
    if home is None or not call.caller.may_see(home.tenant):
        raise bad_request(f'The marker "{shortened(marker)}" is not the id of an event')
    return marker


def show(call: Request) -> Reply:
    """GET …/resources/NAME/events/ID"""
    stack, wanted = call.stack(), call.path["event_id"]
    try:
        item = call.services.database.read(lambda conn: events.get(conn, wanted))
    except NotFound as error:
        raise not_found("Event", wanted) from error
    if item.stack_id != stack.id or item.resource_name != call.path["resource_name"]:
        raise not_found("Event", wanted)
    shown = stacks.event_summary(call, stack, item)
    detail = {"resource_type": item.resource_type, "resource_properties": item.properties or {}}
    return Reply({"event": {**shown, **detail}})
