"""Handlers of the resources of a stack."""

import functools
import typing
from collections.abc import Mapping, Sequence

from ..db import resources, stacks
from ..db.errors import NotFound
from ..db.ids import StackId
from ..db.resources import Resource
from ..db.stacks import Stack
from . import goals, views
from .call import Call, Reply
from .faults import bad_request, not_found
from .schemas import MARK_UNHEALTHY

Json = typing.Any
_FILTERS = ("name", "type", "status", "action", "id", "physical_resource_id")


def index(call: Call) -> Reply:
    """GET …/resources"""
    stack = call.stack()
    depth = call.number("nested_depth") or 0
    found = call.services.database.read(lambda conn: resources.of_tree(conn, stack, depth))
    homes = _homes(call, stack, [item for item, _ in found])
    required = _required_by([item for item, _ in found])
    detailed = call.flag("with_detail")
    shown = []
    for item, stack_name in found:
        if _wanted(call, item):
            home = homes[item.stack_id]
            name = stack_name if depth else None
            view = views.resource_summary(call, home, item, required.get(item.id, ()), stack_name=name)
            shown.append({**view, **_values(call, item)} if detailed else view)
    return Reply({"resources": shown})


def _homes(call: Call, stack: Stack, items: Sequence[Resource]) -> dict[str, Stack]:
    homes: dict[str, Stack] = {stack.id: stack}
    for stack_id in {item.stack_id for item in items} - {stack.id}:
        homes[stack_id] = call.services.database.read(
            functools.partial(stacks.get, stack_id=StackId(stack_id))
        )
    return homes


def _required_by(items: Sequence[Resource]) -> dict[int, list[str]]:
    required: dict[int, list[str]] = {}
    for item in items:
        for needed in item.requires:
            required.setdefault(needed, []).append(item.name)
    return required


def _wanted(call: Call, item: Resource) -> bool:
    values: Mapping[str, str | None] = {
        "name": item.name,
        "type": item.type,
        "status": item.status,
        "action": item.action,
        "id": str(item.id),
        "physical_resource_id": item.physical_id,
    }
    return all(not call.many(key) or values[key] in call.many(key) for key in _FILTERS)


def _values(call: Call, item: Resource) -> dict[str, Json]:
    lookup = views.StackLookup([item], call.services.sealer)
    return {
        "attributes": lookup.attribute(item.name, "") or {},
        "description": (item.definition or {}).get("description", ""),
        "properties": views.masked(item.properties or {}),
    }


def _find(call: Call) -> tuple[Stack, Resource]:
    stack, name = call.stack(), call.path["resource_name"]
    try:
        return stack, call.services.database.read(lambda conn: resources.by_name(conn, stack.id, name))
    except NotFound as error:
        raise not_found("Resource", name) from error


def show(call: Call) -> Reply:
    """GET …/resources/NAME"""
    stack, item = _find(call)
    siblings = call.services.database.read(lambda conn: resources.of_stack(conn, stack.id))
    required = _required_by(siblings).get(item.id, ())
    shown = {**views.resource_summary(call, stack, item, required), **_values(call, item)}
    for name in call.many("with_attr"):
        shown["attributes"].setdefault(name, None)
    return Reply({"resource": shown})


def metadata(call: Call) -> Reply:
    """GET …/resources/NAME/metadata"""
    _, item = _find(call)
    return Reply({"metadata": item.metadata or {}})


def signal(call: Call) -> Reply:
    """POST …/resources/NAME/signal"""
    if call.body is not None and not isinstance(call.body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    stack, item = _find(call)
    call.services.signals.signal(stack, item.name, call.body)
    return Reply(None, 200)


def mark_unhealthy(call: Call) -> Reply:
    """PATCH …/resources/NAME"""
    body = call.valid(MARK_UNHEALTHY)
    stack, item = _find(call)
    call.services.signals.mark_unhealthy(
        stack,
        item.name,
        unhealthy=goals.boolean(body["mark_unhealthy"], "mark_unhealthy", default=False),
        reason=body.get("resource_status_reason") or "",
    )
    return Reply(None, 200)
