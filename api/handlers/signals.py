"""Signals to addresses that carry a signature: for who has no account, such as an instance or an alarm."""

import re
from collections.abc import Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db import resources, stacks
from ...db.errors import NotFound
from ...db.rows import Stack
from ...engine.errors import ResourceReplaced
from ...sealing.signal_urls import SignalAddresses, row_of
from ..auth import RequestContext
from ..errors import Fault, bad_request
from ..request import Reply, Request

GONE = "the resource that this address was made for was deleted or replaced"
_PATH = re.compile("/v1/[^/]+/stacks/[^/]+/[^/]+/resources/[^/]+/signal/[^/]+/?")


def is_presigned(path: str) -> bool:
    """Whether requests to the path are told good from bad by their signature, so that nobody else need look
    at them before."""
    return _PATH.fullmatch(path) is not None


def signed_by(
    addresses: SignalAddresses,
    path: Mapping[str, str],
    query: Mapping[str, Sequence[str]],
    headers: Mapping[str, str],
) -> RequestContext:
    """One who may signal the resource that the path names; no database is asked.

    The signature stands in the query, or in the header that Heat's clients send the handle's token in.

    :param headers: names in upper case.
    :raises Fault: 403.
    """
    given = [*query.get("Signature", ()), headers.get("X-AUTH-TOKEN", "")][0]
    if not addresses.is_right(path, given):
        raise _refused("the signature of this address is missing or wrong")
    return RequestContext(tenant=path["tenant_id"])


def signal(call: Request) -> Reply:
    """POST and PUT …/resources/NAME/signal/ROW?Signature=…"""
    body = call.body
    if body is not None and not isinstance(body, Mapping):
        raise bad_request("The body of a signal must be a JSON object, or empty")
    if body is not None and "unset_hook" in body:
        raise _refused("breakpoints are cleared by users of the stack")
    stack_id, row = row_of(call.path)
    name = call.path["resource_name"]

    def find(conn: Connection) -> Stack | None:
        resources.by_name(conn, stack_id, name)
        return stacks.living(conn, stack_id)

    try:
        stack = call.services.database.read(find)
    except NotFound as error:
        raise _refused(GONE) from error
    if stack is None:
        raise _refused(GONE)
    try:
        call.services.signals.signal(stack, name, body, row=row)
    except ResourceReplaced as error:
        raise _refused(GONE) from error
    return Reply(None, 200)


def _refused(why: str) -> Fault:
    return Fault(403, "Forbidden", f"You are not authorized to send this signal: {why}")
