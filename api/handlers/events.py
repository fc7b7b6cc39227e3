"""Handlers of events."""

from collections.abc import Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db import events
from ...db.errors import NotFound
from ...db.events import EventQuery
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.rows import Event, ListedStack, Stack
from ...shapes import Json
from ..errors import Fault, bad_request, not_found, shortened
from ..operations import Request
from ..policy import SHOWS_HOSTS
from ..reply import Reply, link, stack_url
from ..views.events import event_summary

_FILTERS = {
    "resource_action": "action",
    "resource_status": "status",
    "resource_name": "resource_name",
    "resource_type": "resource_type",
    "physical_resource_id": "physical_id",
    "uuid": "uuid",
}

QUERY = frozenset({*_FILTERS, "nested_depth", "limit", "marker", "sort_keys", "sort_dir"})
SORT_KEYS = ("event_time", "resource_type")
"""Keys by which events are sorted; as in Heat others have no effect, of which its client sends many."""


def index(request: Request) -> Reply:
    """Answer GET …/events."""
    return _listed(request, None)


def of_resource(request: Request) -> Reply:
    """Answer GET …/resources/NAME/events."""
    return _listed(request, request.path["resource_name"])


def _listed(request: Request, resource_name: str | None) -> Reply:
    query = _query(request, resource_name)

    def read(conn: Connection) -> tuple[Stack, Sequence[tuple[Event, str]], Mapping[StackId, ListedStack]]:
        stack = request.find_stack(conn)
        _check_marker(conn, request, query)
        entries = events.list_events(conn, query)
        return stack, entries, stack_list.get_many(conn, {item.stack_id for item, _ in entries})

    stack, entries, homes = request.read(read)
    if resource_name is not None and not entries and not query.marker and not query.filters:
        raise Fault(404, "HTTPNotFound", f"No events found for resource {resource_name}")
    views = []
    hosts = request.may(SHOWS_HOSTS)
    for item, stack_name in entries:
        if item.stack_id not in homes:  # Purged meanwhile.
            continue
        view = event_summary(request, homes[item.stack_id], item, hosts=hosts)
        views.append(_below(request, stack, stack_name, view) if query.nested_depth else view)
    return Reply({"events": views})


def _below(request: Request, root: Stack, stack_name: str, view: Json) -> Json:
    """Add the link to the root to an event of a tree: without it, the client asks for each stack's events."""
    root_link = link(stack_url(request, root), "root_stack")
    return {**view, "stack_name": stack_name, "links": [*view["links"], root_link]}


def _query(request: Request, resource_name: str | None) -> EventQuery:
    sort_keys = [key for key in request.values("sort_keys", split=True) if key in SORT_KEYS]
    direction = request.direction() or ("asc" if sort_keys else "desc")
    filters = {column: request.values(name) for name, column in _FILTERS.items() if request.values(name)}
    return EventQuery(
        stack_id=StackId(request.path["stack_id"]),
        nested_depth=request.number("nested_depth") or 0,
        resource_name=resource_name,
        filters=filters,
        limit=request.limit(),
        marker=request.one("marker") or None,
        descending=direction == "desc",
        by_type=sort_keys[:1] == ["resource_type"],
    )


def _check_marker(conn: Connection, request: Request, query: EventQuery) -> None:
    """Check that the marker of a list is an event that the caller may see.

    :raises Fault: 400.
    """
    if query.marker is None:
        return
    try:
        home = stack_list.get_listed(conn, events.get(conn, query.marker).stack_id)
    except NotFound:
        home = None
    if home is None or not request.caller.may_see(home.project_id):
        raise bad_request(f'The marker "{shortened(query.marker)}" is not the id of an event')


def show(request: Request) -> Reply:
    """Answer GET …/resources/NAME/events/ID."""
    key = request.path["event_id"]

    def read(conn: Connection) -> tuple[Stack, Event]:
        stack = request.find_stack(conn)
        try:
            return stack, events.get(conn, key, stack.id)
        except NotFound as error:
            raise not_found("Event", key) from error

    stack, item = request.read(read)
    if item.resource_name != request.path["resource_name"]:
        raise not_found("Event", key)
    view = event_summary(request, stack, item, hosts=request.may(SHOWS_HOSTS))
    detail = {"resource_type": item.resource_type, "resource_properties": item.properties or {}}
    return Reply({"event": {**view, **detail}})
