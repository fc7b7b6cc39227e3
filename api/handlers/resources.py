"""Handlers of the resources of a stack."""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...db import resources
from ...db.errors import NotFound
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.rows import ListedStack, Resource, Stack
from ...db.work.breakpoints import HeldTask
from ...sealing.stored import metadata_in_clear
from .. import parse
from ..errors import bad_request, resource_not_found
from ..request import Reply, Request, shortened
from ..schemas import MARK_UNHEALTHY
from ..views import stacks

Json = typing.Any
_COLUMNS = {
    "name": "name",
    "type": "type",
    "action": "action",
    "id": "id",
    "physical_resource_id": "physical_id",
}
_OPTIONS = {"nested_depth", "with_detail"}


def index(call: Request) -> Reply:
    """GET …/resources"""
    stack = call.stack()
    fits, depth = _filter(call), call.number("nested_depth") or 0
    detailed = call.flag("with_detail")
    found = call.services.database.read(lambda conn: resources.of_tree(conn, stack, depth, values=detailed))
    homes = _homes(call, stack, [item for item, _ in found])
    held = _held(call, homes.values())
    required = _required_by([item for item, _ in found])
    shown = []
    for item, stack_name in found:
        if item.stack_id in homes and fits(item):
            home = homes[item.stack_id]
            name = stack_name if depth else None
            view = stacks.resource_summary(call, home, item, required.get(item.id, ()), stack_name=name)
            view = stacks.held_summary(view, held.get(item.id))
            shown.append({**view, **_values(call, stack, item)} if detailed else view)
    return Reply({"resources": shown})


def _homes(call: Request, stack: Stack, items: Sequence[Resource]) -> dict[StackId, ListedStack]:
    others = {item.stack_id for item in items} - {stack.id}
    found = call.services.database.read(lambda conn: stack_list.get_many(conn, others))
    return {stack.id: stack, **found}


def _held(call: Request, homes: Iterable[ListedStack]) -> dict[int, HeldTask]:
    """What is held at breakpoints, by resource."""
    found = (item for stack in homes for item in call.services.breakpoints.held_itself(stack))
    return {item.resource_id: item for item in found}


def _required_by(items: Sequence[Resource]) -> dict[int, list[str]]:
    required: dict[int, list[str]] = {}
    for item in items:
        for needed in item.requires:
            required.setdefault(needed, []).append(item.name)
    return required


def _filter(call: Request) -> Callable[[Resource], bool]:
    """:raises Fault: 400, a parameter is not known."""
    if unknown := sorted(set(call.query) - set(_COLUMNS) - _OPTIONS - {"status"}):
        raise bad_request(
            f"Invalid filter parameters {shortened(', '.join(unknown))}; "
            f"known are: {', '.join(sorted([*_COLUMNS, 'status']))}"
        )
    wanted = {column: call.values(name) for name, column in _COLUMNS.items()}
    actions, wanted["status"] = call.statuses("status")
    wanted["action"] = [*wanted["action"], *actions]

    def fits(item: Resource) -> bool:
        return all(
            not values or str(getattr(item, column) or "") in values for column, values in wanted.items()
        )

    return fits


def _values(call: Request, stack: Stack, item: Resource) -> dict[str, Json]:
    lookup = stacks.StackLookup([item], call.sealer_of(stack))
    return {
        "attributes": lookup.attribute(item.name, "") or {},
        "description": (item.definition or {}).get("description", ""),
        "properties": stacks.masked(item.properties or {}),
    }


def _find(call: Request) -> tuple[Stack, Resource]:
    stack, name = call.stack(), call.path["resource_name"]
    try:
        return stack, call.services.database.read(lambda conn: resources.by_name(conn, stack.id, name))
    except NotFound as error:
        raise resource_not_found(name, stack.name) from error


def show(call: Request) -> Reply:
    """GET …/resources/NAME"""
    stack, item = _find(call)
    siblings = [
        found for found, _ in call.services.database.read(lambda conn: resources.of_tree(conn, stack, 0))
    ]
    required = _required_by(siblings).get(item.id, ())
    view = stacks.held_summary(
        stacks.resource_summary(call, stack, item, required), _held(call, [stack]).get(item.id)
    )
    shown = {**view, **_values(call, stack, item)}
    for name in call.values("with_attr"):
        shown["attributes"].setdefault(name, None)
    return Reply({"resource": shown})


def metadata(call: Request) -> Reply:
    """GET …/resources/NAME/metadata"""
    stack, item = _find(call)
    unseal = stacks.unsealer(call.sealer_of(stack))
    return Reply({"metadata": metadata_in_clear(item, unseal)})


def signal(call: Request) -> Reply:
    """POST …/resources/NAME/signal"""
    if call.body is not None and not isinstance(call.body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    stack, item = _find(call)
    if call.body is not None and "unset_hook" in call.body:
        # As in Heat, these details clear a breakpoint and are not for the resource.
        call.services.breakpoints.clear(stack, item.name, call.body["unset_hook"])
    else:
        call.services.signals.signal(stack, item.name, call.body)
    return Reply(None, 200)


def mark_unhealthy(call: Request) -> Reply:
    """PATCH …/resources/NAME_OR_PHYSICAL_ID"""
    body = call.valid(MARK_UNHEALTHY)
    stack, wanted = call.stack(), call.path["resource_name"]
    try:
        call.services.signals.mark_unhealthy(
            stack,
            wanted,
            unhealthy=parse.boolean(body["mark_unhealthy"], "mark_unhealthy", default=False),
            reason=body.get("resource_status_reason") or "",
        )
    except NotFound as error:
        raise resource_not_found(wanted, stack.name) from error
    return Reply(None, 200)
