"""Handlers for the guests in servers, which read their metadata.

Transports of Heat's are served: POLL_SERVER_CFN by requests that the guest signs, POLL_TEMP_URL by a GET
of an address that carries a signature, POLL_SERVER_HEAT by Heat's own API; see identity.py.
"""

import email.utils
from collections.abc import Mapping

from ...db.queries.guests import GuestServer
from ...engine.signal_urls import METADATA, row_of
from ...resources.guests import POLL_SERVER_CFN, POLL_SERVER_HEAT, POLL_TEMP_URL
from ..errors import Fault
from ..etags import has_latest
from ..operations import Handler, Request
from ..presigned import GONE, refused
from ..reply import Reply
from ..signed import account_of, check_named, guest_of, parameters, stack_arn
from ..views import cfn

PURPOSE = METADATA
"""The purpose of the signatures in the addresses of `metadata`."""
JSON = "application/json"


def metadata(request: Request) -> Reply:
    """Answer GET and HEAD …/resources/NAME/guest/ROW?Signature=…: as JSON; 304 if it is known."""
    guests = request.services.guests
    server = _admitted(request, POLL_TEMP_URL)
    guests.record(server, POLL_TEMP_URL)
    if _is_known(request, server):
        return Reply(None, 304, _validators(request, server))
    if request.method == "HEAD":
        return Reply(None, 200, _validators(request, server), text=b"", content_type=JSON)
    document = guests.document(server)
    if document is None:
        raise refused(GONE)
    server, text = document
    return Reply(None, 200, _validators(request, server), text=text.encode(), content_type=JSON)


def metadata_by_account(request: Request) -> Reply:
    """Answer GET /v1/guest/…/resources/NAME/metadata, which takes the token of the server's account."""
    return _metadata_of(request, _admitted(request, POLL_SERVER_HEAT))


def metadata_by_imported(users: Handler) -> Handler:
    """Return a handler that answers accounts of before an import, and leaves users to the other handler."""

    def answer(request: Request) -> Reply:
        server = account_of(request.caller, request.services.guests, request.path)
        return users(request) if server is None else _metadata_of(request, server)

    return answer


def _metadata_of(request: Request, server: GuestServer) -> Reply:
    """Return the metadata of a server in Heat's form, and note that its guest has asked for them.

    :raises Fault: 403, the server is deleted.
    """
    document = request.services.guests.document(server)
    if document is None:
        raise refused(GONE)
    server, text = document
    request.services.guests.record(server, POLL_SERVER_HEAT)
    return Reply(None, 200, text=b'{"metadata": %s}' % text.encode(), content_type=JSON)


def _admitted(request: Request, transport: str) -> GuestServer:
    """Return the server of the path.

    :raises Fault: 403, the server is deleted, or its guest polls by another transport.
    """
    guests = request.services.guests
    server = guests.find(*row_of(request.path))
    if server is None or server.name != request.path["resource_name"] or not guests.admits(server, transport):
        raise refused(GONE)
    return server


def _validators(request: Request, server: GuestServer) -> Mapping[str, str]:
    changed = email.utils.formatdate(request.services.guests.last_modified(server), usegmt=True)
    return {"ETag": _etag(server), "Last-Modified": changed, "Cache-Control": "private, no-cache"}


def _etag(server: GuestServer) -> str:
    return f'"{server.version}"'


def _is_known(request: Request, server: GuestServer) -> bool:
    """Return whether the client has this version; a tag decides before a time, as RFC 9110 says."""
    if (tags := request.headers.get("IF-NONE-MATCH")) is not None:
        return has_latest(tags, _etag(server))
    since = email.utils.parsedate_tz(request.headers.get("IF-MODIFIED-SINCE", ""))
    if since is None:
        return False
    try:
        return request.services.guests.last_modified(server) <= email.utils.mktime_tz(since)
    except (ValueError, OverflowError):
        return False


# -- requests that are signed ----------------------------------------------------------------------


def describe(request: Request) -> Reply:
    """Answer GET and POST /v1?Action=DescribeStackResource, signed by a guest or with an access key.

    :raises Fault: an error of the action, with Amazon's name.
    """
    query = parameters(request.signed)
    server = guest_of(request.signed, request.services.guests, request.services.clock(), request.attempt)
    action = query.get("Action", "")
    if action != "DescribeStackResource":
        raise Fault(400, "InvalidAction", f"The action {action[:100]} is not valid for this endpoint")
    for name in ("StackName", "LogicalResourceId"):
        if not query.get(name):
            raise Fault(400, "MissingParameter", f"{name} parameter is required")
    guests = request.services.guests
    name = query["LogicalResourceId"]
    named = guests.readable(server, name)
    check_named(named or server, query["StackName"], name)
    document = None if named is None else guests.document(named)
    if document is None:
        raise Fault(403, "AccessDenied", GONE)
    resource, text = document
    if named is server:  # An access key is not the key of the server that it reads.
        guests.record(resource, POLL_SERVER_CFN)
    return cfn.described(
        cfn.resource_detail(resource, stack_arn(resource)), text, as_json=cfn.wants_json(request)
    )
