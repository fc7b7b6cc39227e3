"""Checks requests that guests sign with the keys of their server, and finds the resource that they name.

The addresses and the answers are those of Heat's CloudFormation API.
"""

import contextlib
import re
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import falcon

from ..db.queries.guests import GuestServer
from ..engine.guests import Guests
from ..engine.signal_urls import row_of_key
from ..resources.guests import POLL_SERVER_CFN
from .bodies import read_raw
from .context import RequestContext
from .ec2_signatures import (
    MOST_PARAMETERS,
    SignatureClaim,
    SignatureError,
    SignedRequest,
    key_in_sight,
    read_claim,
    verify,
)
from .errors import Fault
from .strangers import Attempt

MOST_UNKNOWN = 64 * 1024
"""Bytes of a body that are read before it is known who has signed it; all that guests may send."""
MOST_LARGE = 2
"""Larger bodies that are read and verified at the same time, in one process."""
_PIECE = 64 * 1024
STACK_USER = "heat_stack_user"
"""Role of the accounts that Heat makes for resources."""
FORM = "application/x-www-form-urlencoded"
_ARN = re.compile("arn:openstack:heat::([^:/]+):stacks/([^/]+)/([^/]+)/resources/([^/]+)")
_STACK_ARN = "arn:openstack:heat::{}:stacks/{}/{}"
_STATUS = {"IncompleteSignature": 400, "RequestExpired": 400}


def signed_request(
    method: str, path: str, query: Mapping[str, Sequence[str]], headers: Mapping[str, str], body: bytes
) -> SignedRequest:
    """Return the parts of a request that signatures are made of.

    :param headers: the headers by name, in upper case.
    :raises Fault: 400, the form has too many parameters.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    form: Sequence[tuple[str, str]] = ()
    if method == "POST" and lower.get("content-type", "").partition(";")[0].strip().lower() == FORM:
        form = _form(body)
    pairs = [(name, value) for name, values in query.items() for value in values]
    return SignedRequest(method, lower.get("host", ""), path, pairs, form, lower, body)


class SignedBodies:
    """Reads the bodies of requests whose signer is not known before the whole body is there.  Thread-safe.

    Whoever reaches the API can send them.  Only a user's template may be larger than MOST_UNKNOWN; then the
    access key has to come first, and few such bodies are in memory at a time.
    """

    def __init__(self) -> None:
        self._large = threading.BoundedSemaphore(MOST_LARGE)

    @contextlib.contextmanager
    def body(self, req: falcon.Request, query: Mapping[str, Sequence[str]], most: int) -> Iterator[bytes]:
        """Yield the body of a request; it may be in memory until the end of the context.

        :param most: bytes that the request may have; more than MOST_UNKNOWN where users send templates.
        :raises Fault: 413, it is too large; 429, there are too many such requests now.
        """
        with contextlib.ExitStack() as exits:

            def check(start: bytes) -> None:
                key = key_in_sight(query, req.get_header("Authorization") or "", start)
                if key is None or row_of_key(key) is not None:
                    raise _too_large()
                if not self._large.acquire(blocking=False):
                    text = "Too many large signed requests are in progress; try again later"
                    raise Fault(429, "TooManyRequests", text, retry_after=1)
                exits.callback(self._large.release)

            if most <= MOST_UNKNOWN:
                yield read_raw(req, most)
            else:
                yield read_raw(req, most, first=MOST_UNKNOWN, check=check)


def _too_large() -> Fault:
    text = f"The body is above the limit of {MOST_UNKNOWN} bytes for requests whose signer is not known"
    return Fault(413, "RequestLimitExceeded", text)


def _form(body: bytes) -> Sequence[tuple[str, str]]:
    if body.count(b"&") >= MOST_PARAMETERS:
        raise Fault(400, "IncompleteSignature", "The form has too many parameters")
    pairs = (part.partition(b"=") for part in body.split(b"&") if part)
    return [(_decoded(name), _decoded(value)) for name, _, value in pairs]


def _decoded(text: bytes) -> str:
    """Return a name or value of a form, decoded in pieces: the library takes 80 times a piece's size."""
    pieces = []
    start = 0
    while start < len(text):
        end = start + _PIECE
        escape = text.rfind(b"%", end - 2, end)
        end = end if escape < 0 else escape  # Which is not cut in two.
        pieces.append(urllib.parse.unquote_to_bytes(text[start:end].replace(b"+", b" ")))
        start = end
    return b"".join(pieces).decode("utf-8", errors="replace")


def guest_of(signed: SignedRequest | None, guests: Guests, now: float, attempt: Attempt) -> GuestServer:
    """Return the server whose guest has signed a request.

    The signature is verified before the database is asked.  A key of before an import has to be read first,
    which the client's address may do a few times only without a right one.

    :param now: seconds since the epoch.
    :raises Fault: 400 or 403, with Amazon's name of the error.
    """
    assert signed is not None
    if len(signed.body) > MOST_UNKNOWN:
        raise _too_large()
    try:
        claim = read_claim(signed)
        row = row_of_key(claim.access_key)
        if row is None:
            attempt.check(claim.access_key)
            imported = _imported(claim, signed, guests, now)
            attempt.identified()
            return imported
        verify(claim, signed, guests.secret(claim.access_key), now)
    except SignatureError as error:
        attempt.fail()
        raise Fault(_STATUS.get(error.code, 403), error.code, str(error)) from error
    server = guests.find(*row)
    if server is None or not guests.admits(server, POLL_SERVER_CFN):
        raise _unknown_key()
    return server


def _imported(claim: SignatureClaim, signed: SignedRequest, guests: Guests, now: float) -> GuestServer:
    """Return the resource of a key of before an import; an address that it has signed is valid with the key.

    :raises SignatureError: the signature is wrong.
    :raises Fault: 403, there is no such key.
    """
    wrong: SignatureError | None = None
    for server, secret in guests.imported(claim.access_key):
        if secret is None:
            continue
        try:
            verify(replace(claim, begins=None, ends=None), signed, secret, now)
        except SignatureError as error:
            wrong = error
            continue
        if guests.admits(server, POLL_SERVER_CFN):
            return server
    raise wrong or _unknown_key()


def account_of(caller: RequestContext, guests: Guests, path: Mapping[str, str]) -> GuestServer | None:
    """Return the resource of the path, if the caller is its account of before an import; None: it is not.

    Such an account belongs to a project of its own, which owns no stack.
    """
    user_id = caller.credentials.get("user_id")
    if STACK_USER not in caller.roles or not isinstance(user_id, str):
        return None
    named = (path["stack_id"], path["resource_name"])
    servers = (server for server, _ in guests.imported(user_id))
    return next((server for server in servers if (server.stack_id, server.name) == named), None)


def parameters(signed: SignedRequest | None) -> Mapping[str, str]:
    """Return the parameters of the query and of the form."""
    assert signed is not None
    return dict((*signed.query, *signed.form))


def check_named(server: GuestServer, stack: str, resource: str) -> None:
    """Check that a guest asks for its own server.

    :param stack: the name, id or ARN of the resource's stack.
    :raises Fault: 403, also where the other one exists.
    """
    names = (server.stack_name, server.stack_id, f"{server.stack_name}/{server.stack_id}", stack_arn(server))
    if stack not in names or resource != server.name:
        raise Fault(403, "AccessDenied", "User is not authorized to perform action")


def check_arn(server: GuestServer, arn: str) -> None:
    """Check that the ARN of a resource names the guest's own server; see `check_named`."""
    match = _ARN.fullmatch(arn)
    if match is None:
        raise Fault(400, "InvalidParameterValue", "The address names no resource by its ARN")
    project, name, stack_id, resource = match.groups()
    check_named(server, _STACK_ARN.format(project, name, stack_id), urllib.parse.unquote(resource))


def stack_arn(server: GuestServer) -> str:
    """Return the ARN of the server's stack."""
    return _STACK_ARN.format(server.project_id, server.stack_name, server.stack_id)


def _unknown_key() -> Fault:
    return Fault(403, "InvalidClientTokenId", "The certificate or AWS Key ID provided does not exist")
