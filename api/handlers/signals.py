"""Handler of signals to addresses that carry a signature."""

from collections.abc import Mapping

from sqlalchemy.engine import Connection

from ...db import resources, stacks
from ...db.errors import NotFound
from ...db.rows import Stack
from ...engine.errors import ResourceReplaced
from ...sealing.signal_urls import row_of
from ..context import Request
from ..errors import bad_request
from ..presigned import refused
from ..request import Reply

GONE = "the resource that this address was made for was deleted or replaced"


def signal(call: Request) -> Reply:
    """Answer POST and PUT …/resources/NAME/signal/ROW?Signature=…."""
    body = call.body
    if body is not None and not isinstance(body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    if body is not None and "unset_hook" in body:
        raise refused("breakpoints are cleared by users of the stack")
    stack_id, row = row_of(call.path)
    name = call.path["resource_name"]

    def find(conn: Connection) -> Stack | None:
        resources.by_name(conn, stack_id, name)
        return stacks.find_undeleted(conn, stack_id)

    try:
        stack = call.read(find)
    except NotFound as error:
        raise refused(GONE) from error
    if stack is None:
        raise refused(GONE)
    try:
        call.services.signals.signal(stack, name, body, row=row)
    except ResourceReplaced as error:
        raise refused(GONE) from error
    return Reply(None, 200)
