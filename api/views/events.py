"""Views of events, in Heat's shapes."""

from ...db.rows import Event, ListedStack
from ...observe.instants import exact_or_none, iso
from ...shapes import Json
from ..reply import link, stack_url
from ..request import HttpRequest


def event_summary(request: HttpRequest, stack: ListedStack, item: Event, *, hosts: bool) -> dict[str, Json]:
    """Return the view of an event in a list: Heat's fields, and those that Stoker adds.

    :param hosts: show which conductor recorded it.
    """
    resource = stack_url(request, stack, "resources", item.resource_name)
    url = f"{resource}/events/{item.uuid}"
    view: dict[str, Json] = {
        "id": item.uuid,
        "resource_name": item.resource_name,
        "logical_resource_id": item.resource_name,
        "physical_resource_id": item.physical_id,
        "resource_status": f"{item.action}_{item.status}",
        "resource_status_reason": item.reason,
        "event_time": iso(item.at),
        "links": [link(url), link(resource, "resource"), link(stack_url(request, stack), "stack")],
        "time": exact_or_none(item.at),
        "attempt": item.attempt,
        "ready_time": exact_or_none(item.ready_at),
        "claimed_time": exact_or_none(item.claimed_at),
    }
    if hosts:
        view["conductor"] = item.conductor
    return view
