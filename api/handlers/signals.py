"""Handlers of signals whose address, or request, carries a signature."""

from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from ...db import resources, stacks
from ...db.errors import NotFound
from ...db.ids import ResourceId, StackId
from ...db.rows import Stack
from ...engine.errors import ResourceReplaced
from ...engine.signal_urls import SIGNAL, row_of
from ...engine.signals import send_signal
from ...shapes import Json
from ..bodies import parse
from ..errors import bad_request
from ..operations import Handler, Request
from ..presigned import GONE, refused
from ..reply import Reply
from ..signed import account_of, check_arn, guest_of
from ..views import cfn

PURPOSE = SIGNAL
"""The purpose of the signatures in the addresses of `signal`."""


def signal(request: Request) -> Reply:
    """Answer POST and PUT …/resources/NAME/signal/ROW?Signature=…."""
    stack_id, row = row_of(request.path)
    deliver(request, stack_id, request.path["resource_name"], row, request.body)
    return Reply(None, 200)


def signal_by_imported(users: Handler) -> Handler:
    """Return a handler that answers accounts of before an import, and leaves users to the other handler."""

    def answer(request: Request) -> Reply:
        server = account_of(request.caller, request.services.guests, request.path)
        if server is None:
            return users(request)
        deliver(request, server.stack_id, server.name, server.id, request.body)
        return Reply(None, 200)

    return answer


def deliver(request: Request, stack_id: StackId, name: str, row: ResourceId, body: Json) -> None:
    """Pass a signal to the resource of a row.

    :raises Fault: 400 or 403.
    """
    if body is not None and not isinstance(body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    if body is not None and "unset_hook" in body:
        raise refused("breakpoints are cleared by users of the stack")

    def find(conn: Connection) -> Stack | None:
        resources.by_name(conn, stack_id, name)
        return stacks.find_undeleted(conn, stack_id)

    try:
        stack = request.read(find)
    except NotFound as error:
        raise refused(GONE) from error
    if stack is None:
        raise refused(GONE)
    try:
        send_signal(request.services.context, stack, name, body, row=row)
    except ResourceReplaced as error:
        raise refused(GONE) from error


def signed_signal(request: Request) -> Reply:
    """Answer POST /v1/signal/ARN, signed with the keys of the resource that gets the signal."""
    return cfn.answered(request, lambda: _take_signed(request, lambda name: Reply(None, 200)))


def wait_condition(request: Request) -> Reply:
    """Answer PUT /v1/waitcondition/ARN, as `signed_signal`."""
    return cfn.answered(request, lambda: _take_signed(request, cfn.signalled))


def _take_signed(request: Request, reply: Callable[[str], Reply]) -> Reply:
    assert request.signed is not None
    server = guest_of(request.signed, request.services.guests, request.services.clock(), request.attempt)
    check_arn(server, request.path["arn"])
    body = parse(request.signed.body) if request.signed.body.strip() else None
    deliver(request, server.stack_id, server.name, server.id, body)
    return reply(server.name)
