"""Handlers of stacks."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db import content, resources
from ...db.queries import nesting, pauses
from ...db.rows import Resource, Stack
from ...db.work import cancel
from ...db.work.breakpoints import HeldTask
from ...db.work.cancel import Unanswered
from ...engine.breakpoints import held
from ...engine.exports import abandon_stack, export_stack
from ...engine.stacks import create_stack, delete_stack
from ...engine.updates import update_stack
from ...sealing.stored import masked
from ...shapes import JsonMap
from .. import stack_requests
from ..errors import Fault
from ..operations import Request
from ..reply import ACCEPTED, Reply, link, stack_url
from ..views import stacks
from ..views.resources import StackLookup


def create(request: Request) -> Reply:
    """Answer POST /stacks."""
    review = request.review(lambda preflight, access: preflight.review_of_creation(access))
    stack = create_stack(request.services.context, stack_requests.create_request(request), review)
    url = stack_url(request, stack)
    return Reply({"stack": {"id": stack.id, "links": [link(url)]}}, 201, {"Location": url})


def update(request: Request) -> Reply:
    """Answer PUT …: everything as the request says."""
    return _update(request, existing=False)


def update_existing(request: Request) -> Reply:
    """Answer PATCH …: values that the request leaves out stay."""
    stack_requests.authorize_patch(request)
    return _update(request, existing=True)


_NAME_STAYS = {"Warning": '299 - "stack_name has no effect: a stack keeps its name"'}


def _update(request: Request, *, existing: bool) -> Reply:
    stack = request.living_stack()
    update = stack_requests.update_request(request, existing=existing)
    review = request.review(lambda preflight, access: preflight.review_of_update(stack, update, access))
    update_stack(request.services.context, stack, update, review)
    return ACCEPTED if stack_requests.keeps_name(request) else replace(ACCEPTED, headers=_NAME_STAYS)


SHOW_QUERY = frozenset({"resolve_outputs"})


def show(request: Request) -> Reply:
    """Answer GET /stacks/NAME/ID."""
    resolved = request.flag("resolve_outputs", default=True)

    def read(conn: Connection) -> tuple[Stack, list[Resource], list[HeldTask], Sequence[Unanswered]]:
        stack, waits = request.find_by(lambda stack_id: pauses.get(conn, stack_id))
        if stack.parent_id is not None:
            stack = replace(stack, timeout_mins=nesting.timeout_mins(conn, stack.root_id))
        shows_values = resolved and stack.deleted_at is None and stack.outputs
        rows = resources.of_stack(conn, stack.id) if shows_values else []
        breakpoints = held(conn, stack) if waits.held else []
        return stack, rows, breakpoints, cancel.unanswered(conn, stack.id) if waits.stopping else []

    stack, rows, breakpoints, waiting = request.read(read)
    body = stacks.stack_detail(request, stack)
    if resolved and stack.deleted_at is None:
        body["outputs"] = (
            stacks.outputs(request, stack, _lookup(request, stack, rows)) if stack.outputs else []
        )
    if waiting:
        body["not_stopped"] = [stacks.not_stopped(step) for step in waiting]
    return Reply({"stack": stacks.with_breakpoints(body, stack, breakpoints)})


def _lookup(request: Request, stack: Stack, rows: Sequence[Resource]) -> StackLookup:
    return StackLookup(rows, request.sealer_of(stack))


def delete(request: Request) -> Reply:
    """Answer DELETE /stacks/NAME/ID."""
    delete_stack(request.services.context, request.permitted_stack(), request.caller.trustor)
    return Reply(None, 204)


def abandon(request: Request) -> Reply:
    """Answer DELETE …/abandon."""
    return Reply(abandon_stack(request.services.context, request.living_stack()))


def export(request: Request) -> Reply:
    """Answer GET …/export."""
    context = request.services.context
    return Reply(request.read(lambda conn: export_stack(context, conn, request.find_living_stack(conn))))


def template(request: Request) -> Reply:
    """Answer GET …/template."""
    return Reply(request.read(lambda conn: content.get(conn, request.find_stack(conn).template_id)))


def environment(request: Request) -> Reply:
    """Answer GET …/environment."""

    def read(conn: Connection) -> tuple[Stack, JsonMap]:
        stack = request.find_stack(conn)
        return stack, content.get(conn, stack.environment_id)

    stack, environment = request.read(read)
    stored = masked(environment)
    return Reply(
        {**stored, "parameters": {**(stored.get("parameters") or {}), **masked(dict(stack.parameters))}}
    )


def files(request: Request) -> Reply:
    """Answer GET …/files."""
    return Reply(request.read(lambda conn: content.get(conn, request.find_stack(conn).files_id)))


def outputs(request: Request) -> Reply:
    """Answer GET …/outputs."""
    stack = request.stack()
    return Reply({"outputs": [stacks.output(name, item, None) for name, item in stack.outputs.items()]})


def output_show(request: Request) -> Reply:
    """Answer GET …/outputs/KEY."""
    key = request.path["output_key"]

    def read(conn: Connection) -> tuple[Stack, list[Resource]]:
        stack = request.find_stack(conn)
        if key not in stack.outputs:
            raise Fault(404, "NotFound", f"Specified output key {key} not found.")
        return stack, resources.of_stack(conn, stack.id)

    stack, rows = request.read(read)
    return Reply({"output": stacks.output(key, stack.outputs[key], _lookup(request, stack, rows))})
