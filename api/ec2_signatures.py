"""Signatures of Amazon's EC2 API, versions 2 and 4: reading and verifying them; pure.

Guests sign with them (os-collect-config, heat-cfntools), and so do clients of CloudFormation.  The caller
reads the claim, finds the secret of its access key, and verifies the claim.

* Version 2, parameters of the query or of a form:
  https://docs.aws.amazon.com/general/latest/gr/signature-version-2.html
* Version 4, a header or parameters of the query:
  https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import base64
import calendar
import hashlib
import hmac
import itertools
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SKEW = 900.0
"""Seconds by which a client's clock may be wrong."""
LONGEST_EXPIRY = 604800
"""Seconds for which an address of version 4 may be valid, as at Amazon."""
MOST_PARAMETERS = 1000
LONGEST_KEY = 128
"""Characters of an access key."""
MOST_AUTHORIZATION = 4096
"""Characters of the header Authorization in which its access key has to be."""
MOST_HEADERS = 50
"""Headers that a request may sign."""

V2_METHOD = "HmacSHA256"
V4_METHOD = "AWS4-HMAC-SHA256"
_ACCESS_KEY = re.compile(rf"[\w.-]{{1,{LONGEST_KEY}}}", re.ASCII)
_CREDENTIAL = re.compile(rf"Credential=([\w.-]{{1,{LONGEST_KEY}}})/", re.ASCII)
_KEY_IN_FORM = re.compile(rb"(?:^|&)AWSAccessKeyId=([\w.-]{1,%d})&" % LONGEST_KEY, re.ASCII)
_SCOPE = re.compile(r"\d{8}/[\w-]{1,64}/[\w-]{1,64}/aws4_request", re.ASCII)
_HEADER_NAME = re.compile(r"[a-z0-9-]{1,64}")
_SECONDS = re.compile(r"[0-9]{1,6}")
_V2_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?Z?", re.ASCII)
_V2_STAMP = "%Y-%m-%dT%H:%M:%S"
_V4_STAMP = "%Y%m%dT%H%M%SZ"

Pairs = Sequence[tuple[str, str]]


class SignatureError(Exception):
    """A request that is not signed, or not rightly.

    :ivar code: Amazon's name of the error.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class SignedRequest:
    """A request whose signature is to be verified.

    :ivar host: the header Host as the client has sent it, with its port.
    :ivar path: the percent-decoded path.
    :ivar query: decoded parameters of the query, in their order.
    :ivar form: the decoded parameters of a body that is a form.
    :ivar headers: the headers by name, in lower case.
    """

    method: str
    host: str
    path: str
    query: Pairs
    form: Pairs = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class SignatureClaim:
    """A signature as a request carries it, not verified yet.

    :ivar version: the version of the signature, 2 or 4.
    :ivar begins, ends: the seconds since the epoch between which it is valid; None: no such bound.
    :ivar scope: the date, region and service of a signature of version 4.
    :ivar signed_headers: the names of the headers that a signature of version 4 covers.
    :ivar stamp: the time of a signature of version 4, as the client wrote it.
    """

    version: int
    access_key: str
    signature: str = field(repr=False)
    begins: float | None = None
    ends: float | None = None
    scope: str = ""
    signed_headers: tuple[str, ...] = ()
    stamp: str = ""


@dataclass(frozen=True)
class _Canonical:
    """The part of what is signed that is the same for each form of the host and the path; made once.

    :ivar parameters: the parameters as both versions sign them, sorted by their bytes.
    :ivar body_hash: the body's hash, which version 4 signs.
    """

    parameters: str
    body_hash: str


def key_in_sight(query: Mapping[str, Sequence[str]], authorization: str, start: bytes) -> str | None:
    """Return the access key that a request names before the end of its body has arrived; None: none yet.

    :param authorization: the header Authorization.
    :param start: the beginning of a body that may be a form.
    """
    credential = [*query.get("X-Amz-Credential", ()), ""][0].partition("/")[0]
    if match := _CREDENTIAL.search(authorization[:MOST_AUTHORIZATION]):
        credential = match[1]
    if in_form := _KEY_IN_FORM.search(start):
        credential = credential or in_form[1].decode()
    key = credential or [*query.get("AWSAccessKeyId", ()), ""][0]
    return key if _ACCESS_KEY.fullmatch(key) else None


def read_claim(request: SignedRequest) -> SignatureClaim:
    """Return the signature that a request carries.

    :raises SignatureError: the request carries no signature, or a malformed one.
    """
    names = [name for name, _ in itertools.chain(request.query, request.form)]
    if len(names) > MOST_PARAMETERS:
        raise _incomplete(f"a request may have {MOST_PARAMETERS} parameters or fewer")
    if len(names) != len(set(names)):
        raise _incomplete("a parameter is given twice")
    query = dict(request.query)
    header = request.headers.get("authorization", "")
    if header.startswith(V4_METHOD):
        return _claim_of_header(header, request.headers)
    if "X-Amz-Signature" in query:
        return _claim_of_address(query)
    if "Signature" in names:
        return _claim_2({**query, **dict(request.form)})
    raise SignatureError("MissingAuthenticationToken", "The request is not signed")


def verify(claim: SignatureClaim, request: SignedRequest, secret: str, now: float) -> None:
    """Check that the holder of the secret has signed the request, and that the signature is valid now.

    A signature of version 2 without a time is valid as long as the secret is: os-collect-config sends none.

    :param now: seconds since the epoch.
    :raises SignatureError: the signature is wrong, or expired.
    """
    make = _signature_2 if claim.version == 2 else _signature_4
    signature = claim.signature.encode(errors="replace")
    text = _canonical(request, claim.version)
    is_right = False
    for host, path in itertools.product(_hosts(request.host), _paths(claim.version, request.path)):
        is_right |= hmac.compare_digest(make(claim, request, text, secret, host, path).encode(), signature)
    if not is_right:
        raise SignatureError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided",
        )
    if (claim.begins is not None and now < claim.begins) or (claim.ends is not None and now > claim.ends):
        raise SignatureError("RequestExpired", "The signature has expired, or the client's clock is wrong")


# -- version 2 -------------------------------------------------------------------------------------


def _claim_2(params: Mapping[str, str]) -> SignatureClaim:
    if params.get("SignatureVersion") != "2":
        raise _incomplete("SignatureVersion must be 2")
    if params.get("SignatureMethod") != V2_METHOD:
        raise _incomplete(f"SignatureMethod must be {V2_METHOD}")
    begins = ends = None
    if "Timestamp" in params:
        begins, ends = (_time_2(params["Timestamp"]) + bound for bound in (-SKEW, SKEW))
    if "Expires" in params:
        if begins is not None:
            raise _incomplete("Timestamp and Expires exclude each other")
        ends = _time_2(params["Expires"])
    return SignatureClaim(
        version=2,
        access_key=_access_key(params.get("AWSAccessKeyId", "")),
        signature=params["Signature"],
        begins=begins,
        ends=ends,
    )


def _time_2(text: str) -> float:
    match = _V2_TIME.fullmatch(text)
    if match is None:
        raise _incomplete("a time must look like 2030-01-31T23:59:59Z")
    return _time(match[1], _V2_STAMP)


def _signature_2(
    claim: SignatureClaim, request: SignedRequest, text: _Canonical, secret: str, host: str, path: str
) -> str:
    lines = "\n".join([request.method.upper(), host.lower(), path, text.parameters])
    return base64.b64encode(_hmac(secret.encode(), lines)).decode()


# -- version 4 -------------------------------------------------------------------------------------


def _claim_of_header(header: str, headers: Mapping[str, str]) -> SignatureClaim:
    parts = dict(part.strip().partition("=")[::2] for part in header.removeprefix(V4_METHOD).split(","))
    return _claim_4(
        parts.get("Credential", ""),
        parts.get("SignedHeaders", ""),
        parts.get("Signature", ""),
        headers.get("x-amz-date", ""),
        expires=None,
    )


def _claim_of_address(query: Mapping[str, str]) -> SignatureClaim:
    if query.get("X-Amz-Algorithm") != V4_METHOD:
        raise _incomplete(f"X-Amz-Algorithm must be {V4_METHOD}")
    expires = query.get("X-Amz-Expires", "")
    if not _SECONDS.fullmatch(expires) or not 1 <= int(expires) <= LONGEST_EXPIRY:
        raise _incomplete(f"X-Amz-Expires must be a number of seconds from 1 to {LONGEST_EXPIRY}")
    return _claim_4(
        query.get("X-Amz-Credential", ""),
        query.get("X-Amz-SignedHeaders", ""),
        query["X-Amz-Signature"],
        query.get("X-Amz-Date", ""),
        expires=int(expires),
    )


def _claim_4(
    credential: str, headers: str, signature: str, stamp: str, *, expires: int | None
) -> SignatureClaim:
    access_key, _, scope = credential.partition("/")
    if not _SCOPE.fullmatch(scope):
        raise _incomplete("Credential must be ACCESS_KEY/DATE/REGION/SERVICE/aws4_request")
    names = tuple(headers.split(";"))
    if len(names) > MOST_HEADERS or not all(_HEADER_NAME.fullmatch(name) for name in names):
        raise _incomplete("SignedHeaders must be names of headers in lower case, separated by semicolons")
    if "host" not in names:
        raise _incomplete("SignedHeaders must name host")
    if not signature:
        raise _incomplete("Signature is missing")
    at = _time(stamp, _V4_STAMP)
    if not stamp.startswith(scope[:8]):
        raise _incomplete("the date in Credential is not that of X-Amz-Date")
    return SignatureClaim(
        version=4,
        access_key=_access_key(access_key),
        signature=signature,
        begins=at - SKEW,
        ends=at + (SKEW if expires is None else expires),
        scope=scope,
        signed_headers=names,
        stamp=stamp,
    )


def _signature_4(
    claim: SignatureClaim, request: SignedRequest, text: _Canonical, secret: str, host: str, path: str
) -> str:
    headers = {**request.headers, "host": host}
    missing = [name for name in claim.signed_headers if name not in headers]
    if missing:
        raise _incomplete(f"the signed header {missing[0]} is missing")
    canonical = "\n".join(
        [
            request.method.upper(),
            path,
            text.parameters,
            *(f"{name}:{' '.join(headers[name].split())}" for name in claim.signed_headers),
            "",
            ";".join(claim.signed_headers),
            text.body_hash,
        ]
    )
    digest = hashlib.sha256(canonical.encode(errors="replace")).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in claim.scope.split("/"):
        key = _hmac(key, part)
    return _hmac(key, "\n".join([V4_METHOD, claim.stamp, claim.scope, digest])).hex()


# -- both ------------------------------------------------------------------------------------------


def _hosts(host: str) -> Sequence[str]:
    """Return the forms of the host that clients sign: boto leaves out the port."""
    bare = re.sub(r":\d+$", "", host)
    return (host,) if bare == host else (host, bare)


def _paths(version: int, path: str) -> Iterator[str]:
    """Return the forms of the path that clients sign.

    Version 2: as the application sees it, which Heat's addresses and keystoneclient sign, or as it was sent.
    Version 4: as it was sent, or quoted once more, as botocore does it.
    """
    once = urllib.parse.quote(path, safe="/~", errors="replace")
    forms = (path, once) if version == 2 else (once, urllib.parse.quote(once, safe="/~"))
    return iter(dict.fromkeys(forms))


def _canonical(request: SignedRequest, version: int) -> _Canonical:
    if version == 2:
        pairs = [pair for pair in (*request.query, *request.form) if pair[0] != "Signature"]
        body_hash = ""
    else:
        pairs = [pair for pair in request.query if pair[0] != "X-Amz-Signature"]
        body_hash = hashlib.sha256(request.body).hexdigest()
    quoted = sorted((_quoted(name), _quoted(value)) for name, value in pairs)
    return _Canonical("&".join(f"{name}={value}" for name, value in quoted), body_hash)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~", errors="replace")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(errors="replace"), hashlib.sha256).digest()


def _access_key(text: str) -> str:
    if not _ACCESS_KEY.fullmatch(text):
        raise _incomplete("the access key is missing or malformed")
    return text


def _time(text: str, form: str) -> float:
    try:
        return float(calendar.timegm(time.strptime(text, form)))
    except ValueError as error:
        raise _incomplete("a time is missing or malformed") from error


def _incomplete(why: str) -> SignatureError:
    return SignatureError("IncompleteSignature", f"The request's signature is incomplete: {why}")
