"""Checks signatures of addresses, for who has no account, such as an instance or an alarm."""

import re
from collections.abc import Mapping, Sequence

from ..engine.signal_urls import SignalAddresses
from .context import RequestContext
from .errors import Fault

_RESOURCE = "/v1/[^/]+/stacks/[^/]+/[^/]+/resources/[^/]+"
_ACCOUNTS = "/v1/identity/v3(/auth/tokens)?/?|/v1/guest/[^/]+/[^/]+/stacks/.*"
_PATH = re.compile(
    f"{_RESOURCE}/(signal|guest)/[^/]+/?|/v1/?|/v1/(signal|waitcondition)/.*|{_ACCOUNTS}", re.DOTALL
)
GONE = "the resource that this address was made for was deleted or replaced"


def is_presigned(path: str) -> bool:
    """Return whether a signature decides about requests to the path, so that nobody else checks them."""
    return _PATH.fullmatch(path) is not None


def signed_by(
    addresses: SignalAddresses,
    path: Mapping[str, str],
    query: Mapping[str, Sequence[str]],
    headers: Mapping[str, str],
    purpose: str,
) -> RequestContext:
    """Return a caller with the right that the signature gives to the path's resource; no database is asked.

    The signature is in the query, or in the header that Heat's clients send the handle's token in.

    :param headers: the headers by name, in upper case.
    :raises Fault: 403, the signature is missing or wrong.
    """
    signature = [*query.get("Signature", ()), headers.get("X-AUTH-TOKEN", "")][0]
    if not addresses.is_right(path, signature, purpose):
        raise refused("the signature of this address is missing or wrong")
    return RequestContext(project_id=path["tenant_id"])


def refused(why: str) -> Fault:
    """Return the answer to a request that is refused."""
    return Fault(403, "Forbidden", f"You are not authorized to use this address: {why}")
