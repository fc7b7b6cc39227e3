"""Handlers of stacks."""

import typing
import urllib.parse
from collections.abc import Mapping

from ...db import content, resources
from ...db.errors import NotFound
from ...db.ids import StackId
from ...db.queries import stack_list
from ...db.queries.stack_list import SORT_KEYS, StackQuery
from ...db.rows import DetailedStack, ListedStack, Stack
from ...db.work import cancel
from ...planning.requests import Preview, PreviewedResource
from .. import parse
from ..errors import Fault, bad_request, not_found
from ..request import ACCEPTED, Reply, Request, shortened
from ..schemas import VALIDATE
from ..views import stacks

Json = typing.Any

IGNORABLE = ("99001",)
"""Errors that a validation may pass over: that a service is away which a type needs; none is here."""

_FILTERS = {
    "id": "id",
    "name": "name",
    "stack_name": "name",
    "action": "action",
    "stack_action": "action",
    "stack_status_reason": "reason",
    "tenant": "tenant",
    "stack_user_project_id": "tenant",
    "username": "owner",
    "stack_owner": "owner",
    "owner_id": "parent_id",
    "parent": "parent_id",
}


def create(call: Request) -> Reply:
    """POST /stacks"""
    stack = call.services.orders.create(parse.create_request(call))
    url = stacks.stack_url(call, stack)
    return Reply({"stack": {"id": stack.id, "links": [stacks.link(url)]}}, 201, {"Location": url})


def update(call: Request) -> Reply:
    """PUT …: everything as the request says"""
    return _update(call, existing=False)


def update_existing(call: Request) -> Reply:
    """PATCH …: what the request leaves out stays"""
    parse.authorize_patch(call)
    return _update(call, existing=True)


def _update(call: Request, *, existing: bool) -> Reply:
    stack = call.stack()
    call.services.updates.update(stack, parse.update_request(call, existing=existing))
    return ACCEPTED


def preview(call: Request) -> Reply:
    """POST /stacks/preview"""
    return Reply({"stack": _preview(call, call.services.validation.preview(parse.create_request(call)))})


def _preview(call: Request, found: Preview) -> dict[str, Json]:
    url = f"{call.base_url}/v1/{stacks.quoted(call.caller.tenant)}/stacks/{found.name}/None"
    return {
        "id": "None",
        "stack_name": found.name,
        "description": found.description or stacks.NO_DESCRIPTION,
        "template_description": found.description or stacks.NO_DESCRIPTION,
        "parameters": dict(found.parameters),
        "timeout_mins": found.timeout_mins,
        "disable_rollback": found.disable_rollback,
        "tags": list(found.tags) or None,
        "links": [stacks.link(url)],
        "stack_owner": call.caller.user,
        "stack_user_project_id": call.caller.tenant,
        "parent": None,
        "capabilities": [],
        "notification_topics": [],
        "creation_time": stacks.iso(call.services.clock()),
        "updated_time": None,
        "deletion_time": None,
        "resources": [_previewed(call, found.name, item) for item in found.resources],
    }


def _previewed(call: Request, stack_name: str, item: PreviewedResource) -> dict[str, Json]:
    identity = {"tenant": call.caller.tenant, "stack_name": stack_name, "stack_id": "None", "path": ""}
    now = stacks.iso(call.services.clock())
    return {
        "resource_name": item.name,
        "resource_type": item.type,
        "resource_action": item.action,
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_identity": {**identity, "path": f"/resources/{item.name}"},
        "stack_identity": identity,
        "stack_name": stack_name,
        "physical_resource_id": "",
        "creation_time": now,
        "updated_time": now,
        "properties": stacks.masked(item.properties),
        "metadata": stacks.masked(item.metadata),
        "attributes": {},
        "description": item.description,
        "required_by": list(item.required_by),
    }


def validate(call: Request) -> Reply:
    """POST /validate"""
    call.flag("show_nested")
    body = call.valid(VALIDATE)
    if unknown := sorted(set(call.parts("ignore_errors")) - set(IGNORABLE)):
        wrong, known = shortened(", ".join(unknown)), ", ".join(IGNORABLE)
        raise bad_request(f"Invalid codes in ignore_errors: {wrong}; known are: {known}")
    return Reply(call.services.validation.validate(call.caller.tenant, parse.goal(call, body)))


def index(call: Request) -> Reply:
    """GET /stacks"""
    everybody = call.flag("global_tenant")
    if everybody:
        call.services.auth.authorize(call.caller, "stacks:global_index")
    query = _query(call, everybody=everybody)
    found = call.services.database.read(lambda conn: stack_list.list_stacks(conn, query, ListedStack))
    shown = [stacks.stack_summary(call, stack, project=everybody) for stack in found]
    body: dict[str, Json] = {"stacks": shown}
    if query.limit and len(found) == query.limit:
        body["links"] = [stacks.link(_next_page(call, "stacks", found[-1].id), "next")]
    if call.flag("with_count"):
        body["count"] = call.services.database.read(lambda conn: stack_list.count_stacks(conn, query))
    return Reply(body)


def detail(call: Request) -> Reply:
    """GET /stacks/detail"""
    query = _query(call, everybody=False)
    found = call.services.database.read(lambda conn: stack_list.list_stacks(conn, query, DetailedStack))
    return Reply({"stacks": [stacks.stack_detail(call, stack) for stack in found]})


def _next_page(call: Request, path: str, marker: str) -> str:
    pairs = [(name, value) for name, value in urllib.parse.parse_qsl(call.query_string) if name != "marker"]
    query = urllib.parse.urlencode([*pairs, ("marker", marker)])
    return f"{call.base_url}/v1/{stacks.quoted(call.caller.tenant)}/{path}?{query}"


def _query(call: Request, *, everybody: bool) -> StackQuery:
    call.flag("show_hidden")  # No stack is hidden; only the value is judged.
    tenant = None if everybody else call.caller.tenant
    return StackQuery(
        tenant=tenant,
        filters=_filters(call),
        tags=call.parts("tags"),
        tags_any=call.parts("tags_any") or call.parts("tags-any"),
        not_tags=call.parts("not_tags") or call.parts("not-tags"),
        not_tags_any=call.parts("not_tags_any") or call.parts("not-tags-any"),
        show_deleted=call.flag("show_deleted"),
        show_nested=call.flag("show_nested"),
        limit=call.limit(),
        marker=_marker(call, tenant),
        sort=_sort(call),
    )


def _marker(call: Request, tenant: str | None) -> StackId | None:
    marker = call.one("marker")
    if not marker:
        return None
    try:
        found = call.services.database.read(lambda conn: stack_list.get_listed(conn, StackId(marker)))
    except NotFound:
        found = None
    if found is None or tenant not in (None, found.tenant):
        raise bad_request(f'The marker "{shortened(marker)}" is not the id of a stack')
    return found.id


def _filters(call: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, column in _FILTERS.items():
        if values := call.values(name):
            found.setdefault(column, []).extend(values)
    actions, statuses = call.statuses("status", "stack_status")
    if statuses:
        found["status"] = statuses
    if actions:
        found.setdefault("action", []).extend(actions)
    return found


def _sort(call: Request) -> list[tuple[str, bool]]:
    keys, direction = call.parts("sort_keys"), call.direction()
    for key in keys:
        if key not in SORT_KEYS:
            raise bad_request(f'Invalid sort key "{shortened(key)}", the keys are: {", ".join(SORT_KEYS)}')
    if not keys:
        return [("created_at", direction != "asc")]
    return [(SORT_KEYS[key], direction == "desc") for key in keys]


def lookup(call: Request) -> Reply:
    """Any method on /stacks/NAME_OR_ID and what lies below it: redirect to the full path."""
    wanted, database = call.path["stack_name"], call.services.database
    try:
        found = database.read(lambda conn: stack_list.find_by_name(conn, call.caller.tenant, wanted))
    except NotFound:
        found = _by_id(call, wanted)
    more = [part for part in (call.path.get("below"),) if part]
    url = stacks.stack_url(call, found, *more)
    return Reply(None, 302, {"Location": f"{url}?{call.query_string}" if call.query_string else url})


def _by_id(call: Request, stack_id: str) -> ListedStack:
    try:
        found = call.services.database.read(lambda conn: stack_list.get_listed(conn, StackId(stack_id)))
    except NotFound as error:
        raise not_found("Stack", stack_id) from error
    if not call.caller.may_see(found.tenant):
        raise not_found("Stack", stack_id)
    return found


def show(call: Request) -> Reply:
    """GET /stacks/NAME/ID"""
    stack = call.stack()
    body = stacks.stack_detail(call, stack)
    if call.flag("resolve_outputs", default=True) and stack.deleted_at is None:
        body["outputs"] = stacks.outputs(call, stack, _lookup(call, stack)) if stack.outputs else []
    held = call.services.breakpoints.held(stack)
    waiting = call.services.database.read(lambda conn: cancel.unanswered(conn, stack.id))
    if waiting:
        body["not_stopped"] = [stacks.not_stopped(step) for step in waiting]
    return Reply({"stack": stacks.with_breakpoints(body, stack, held)})


def _lookup(call: Request, stack: Stack) -> stacks.StackLookup:
    found = call.services.database.read(lambda conn: resources.of_stack(conn, stack.id))
    return stacks.StackLookup(found, call.sealer_of(stack))


def delete(call: Request) -> Reply:
    """DELETE /stacks/NAME/ID"""
    stack = call.living_stack()
    call.check_types(stack)
    call.services.orders.delete(stack)
    return Reply(None, 204)


def abandon(call: Request) -> Reply:
    """DELETE …/abandon"""
    return Reply(call.services.exports.abandon(call.living_stack()))


def export(call: Request) -> Reply:
    """GET …/export"""
    return Reply(call.services.exports.export(call.living_stack()))


def template(call: Request) -> Reply:
    """GET …/template"""
    return Reply(_content(call, call.stack().template_id))


def environment(call: Request) -> Reply:
    """GET …/environment"""
    stack = call.stack()
    stored = stacks.masked(_content(call, stack.environment_id))
    return Reply({**stored, "parameters": {**stored["parameters"], **stacks.masked(dict(stack.parameters))}})


def files(call: Request) -> Reply:
    """GET …/files"""
    return Reply(_content(call, call.stack().files_id))


def _content(call: Request, key: typing.Any) -> Mapping[str, Json]:
    found: Mapping[str, Json] = call.services.database.read(lambda conn: content.get(conn, key))
    return found


def outputs(call: Request) -> Reply:
    """GET …/outputs"""
    stack = call.stack()
    return Reply({"outputs": [stacks.output(name, item, None) for name, item in stack.outputs.items()]})


def output_show(call: Request) -> Reply:
    """GET …/outputs/KEY"""
    stack, key = call.stack(), call.path["output_key"]
    if key not in stack.outputs:
        raise Fault(404, "NotFound", f"Specified output key {key} not found.")
    return Reply({"output": stacks.output(key, stack.outputs[key], _lookup(call, stack))})
