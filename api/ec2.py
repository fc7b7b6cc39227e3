"""Users who sign requests with EC2 credentials, as clients of Amazon's CloudFormation do."""

import hashlib
import urllib.parse

from ..engine.guests import Guests
from ..engine.signal_urls import row_of_key
from ..keystone.ec2_tokens import SignatureRefused
from ..shapes import Json
from .authenticator import Authenticator
from .collaborators import Exchange
from .context import RequestContext
from .ec2_signatures import SignatureError, SignedRequest, read_claim
from .errors import Fault
from .strangers import Attempt

_STATUS = {"IncompleteSignature": 400, "RequestExpired": 400}


def is_guests(signed: SignedRequest | None, guests: Guests, attempt: Attempt) -> bool:
    """Return whether the key of a request is a guest's: one of Stoker's, or of before an import.

    :raises Fault: 400 or 403, the request is not signed, or not rightly; 429, see strangers.py.
    """
    key = _access_key(signed)
    if row_of_key(key) is not None:
        return True
    attempt.check(key)
    return bool(guests.imported(key))


def _access_key(signed: SignedRequest | None) -> str:
    assert signed is not None
    try:
        return read_claim(signed).access_key
    except SignatureError as error:
        raise Fault(_STATUS.get(error.code, 403), error.code, str(error)) from error


def signer(
    signed: SignedRequest | None, auth: Authenticator, exchange: Exchange | None, attempt: Attempt
) -> RequestContext:
    """Return the user who has signed a request, in the project of their key.

    :param exchange: the exchange with Keystone; None: nobody is authenticated, and the key names the project.
    :raises Fault: 400, 401 or 403, the signature is malformed, missing or wrong.
    :raises KeystoneUnavailable: Keystone does not answer.
    """
    key = _access_key(signed)
    assert signed is not None
    attempt.check(key)
    if exchange is None:
        attempt.identified()
        return auth.identify(None, {"X-PROJECT-ID": key})
    try:
        headers = exchange(credentials(key, signed))
    except SignatureRefused as error:
        text = "User is not authorized to perform action: the key is unknown, or the signature is wrong"
        raise Fault(403, "AccessDenied", text) from error
    attempt.identified()
    return auth.identify(None, headers)


def credentials(key: str, signed: SignedRequest) -> dict[str, Json]:
    """Return a signed request in the form that Keystone verifies, which is Heat's."""
    params = dict((*signed.query, *signed.form))
    header_values = {name.title(): value for name, value in signed.headers.items()}
    signatures = [
        params.pop("Signature", None),
        params.get("X-Amz-Signature"),
        header_values.get("Authorization", "").partition("Signature=")[2].partition(",")[0],
    ]
    return {
        "access": key,
        "signature": next((text for text in signatures if text), ""),
        "host": signed.host,
        "verb": signed.method,
        "path": urllib.parse.quote(signed.path, safe="/~"),
        "params": params,
        "headers": header_values,
        "body_hash": hashlib.sha256(signed.body).hexdigest(),
    }
