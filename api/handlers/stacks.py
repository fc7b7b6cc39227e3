"""Handlers of stacks."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db import content, resources
from ...db.queries import nesting
from ...db.rows import Resource, Stack
from ...db.work import cancel
from ...db.work.breakpoints import HeldTask
from ...db.work.cancel import Unanswered
from ...engine.breakpoints import held
from ...sealing.stored import masked
from .. import parse
from ..context import Request
from ..errors import Fault
from ..request import ACCEPTED, Reply, link, stack_url
from ..views import stacks
from ..views.resources import StackLookup

Json = typing.Any


def create(call: Request) -> Reply:
    """Answer POST /stacks."""
    stack = call.services.stacks.create(parse.create_request(call))
    url = stack_url(call, stack)
    return Reply({"stack": {"id": stack.id, "links": [link(url)]}}, 201, {"Location": url})


def update(call: Request) -> Reply:
    """Answer PUT …: everything as the request says."""
    return _update(call, existing=False)


def update_existing(call: Request) -> Reply:
    """Answer PATCH …: what the request leaves out stays."""
    parse.authorize_patch(call)
    return _update(call, existing=True)


def _update(call: Request, *, existing: bool) -> Reply:
    stack = call.stack()
    call.services.updates.update(stack, parse.update_request(call, existing=existing))
    return ACCEPTED


SHOW_QUERY = frozenset({"resolve_outputs"})


def show(call: Request) -> Reply:
    """Answer GET /stacks/NAME/ID."""
    resolved = call.flag("resolve_outputs", default=True)

    def read(conn: Connection) -> tuple[Stack, list[Resource], list[HeldTask], Sequence[Unanswered]]:
        stack = call.find_stack(conn)
        if stack.parent_id is not None:
            stack = replace(stack, timeout_mins=nesting.timeout_mins(conn, stack.root_id))
        shows_values = resolved and stack.deleted_at is None and stack.outputs
        rows = resources.of_stack(conn, stack.id) if shows_values else []
        return stack, rows, held(conn, stack), cancel.unanswered(conn, stack.id)

    stack, rows, breakpoints, waiting = call.read(read)
    body = stacks.stack_detail(call, stack)
    if resolved and stack.deleted_at is None:
        body["outputs"] = stacks.outputs(call, stack, _lookup(call, stack, rows)) if stack.outputs else []
    if waiting:
        body["not_stopped"] = [stacks.not_stopped(step) for step in waiting]
    return Reply({"stack": stacks.with_breakpoints(body, stack, breakpoints)})


def _lookup(call: Request, stack: Stack, rows: Sequence[Resource]) -> StackLookup:
    return StackLookup(rows, call.sealer_of(stack))


def delete(call: Request) -> Reply:
    """Answer DELETE /stacks/NAME/ID."""
    call.services.stacks.delete(call.permitted_stack())
    return Reply(None, 204)


def abandon(call: Request) -> Reply:
    """Answer DELETE …/abandon."""
    return Reply(call.services.exports.abandon(call.living_stack()))


def export(call: Request) -> Reply:
    """Answer GET …/export."""
    exports = call.services.exports
    return Reply(call.read(lambda conn: exports.export(conn, call.find_living_stack(conn))))


def template(call: Request) -> Reply:
    """Answer GET …/template."""
    return Reply(call.read(lambda conn: content.get(conn, call.find_stack(conn).template_id)))


def environment(call: Request) -> Reply:
    """Answer GET …/environment."""

    def read(conn: Connection) -> tuple[Stack, Mapping[str, Json]]:
        stack = call.find_stack(conn)
        return stack, content.get(conn, stack.environment_id)

    stack, found = call.read(read)
    stored = masked(found)
    return Reply({**stored, "parameters": {**stored["parameters"], **masked(dict(stack.parameters))}})


def files(call: Request) -> Reply:
    """Answer GET …/files."""
    return Reply(call.read(lambda conn: content.get(conn, call.find_stack(conn).files_id)))


def outputs(call: Request) -> Reply:
    """Answer GET …/outputs."""
    stack = call.stack()
    return Reply({"outputs": [stacks.output(name, item, None) for name, item in stack.outputs.items()]})


def output_show(call: Request) -> Reply:
    """Answer GET …/outputs/KEY."""
    key = call.path["output_key"]

    def read(conn: Connection) -> tuple[Stack, list[Resource]]:
        stack = call.find_stack(conn)
        if key not in stack.outputs:
            raise Fault(404, "NotFound", f"Specified output key {key} not found.")
        return stack, resources.of_stack(conn, stack.id)

    stack, rows = call.read(read)
    return Reply({"output": stacks.output(key, stack.outputs[key], _lookup(call, stack, rows))})
