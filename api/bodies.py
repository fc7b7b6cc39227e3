"""Reads the bodies of requests within their limit, and the JSON in them.

It refuses texts that no database or answer can hold.

oslo.middleware's sizelimit is no replacement.  It answers 413 as plain text, not in Heat's shape.  It does
not read the rest of the body, so a client that still sends sees a broken pipe in place of the reason.
"""

import json
import typing
from collections.abc import Callable, Iterator, Mapping

import falcon

from ..shapes import Json
from .errors import Fault, bad_request

MAX_DEPTH = 128
"""Most levels of objects and lists in each other: a template's own limit, and those around a template."""

TOKEN_HEADER = "X-Auth-Token"

DRAINED = 8
"""A body up to this many times the limit is read to its end before it is refused.

A client that still sends when the connection closes would see a broken pipe in place of the reason.
"""

_PIECE = 65536
_TOO_LARGE = "RequestLimitExceeded"


class _Readable(typing.Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


def read_raw(
    req: falcon.Request, most: int, *, first: int = 0, check: Callable[[bytes], None] = lambda start: None
) -> bytes:
    """Return the body of a POST, PUT or PATCH as it was sent; empty without one.

    :param first: bytes of a longer body that are read before the rest; 0: all.
    :param check: gets these bytes, and raises a Fault where the rest is not to be read.
    :raises Fault: 400, 408 or 413.
    """
    if req.method not in ("POST", "PUT", "PATCH"):
        return b""
    try:
        length = req.content_length
        if length is not None and length > most:
            if length <= DRAINED * most:
                _drain(req.bounded_stream, length)
            raise Fault(413, _TOO_LARGE, f"The body has {length} bytes, above the limit of {most}")
        # A chunked body has no length; the server marks that its stream ends where the body does.
        chunked = length is None and req.env.get("wsgi.input_terminated")
        stream: _Readable = req.stream if chunked else req.bounded_stream
        raw = stream.read((first or most) + 1)
        if 0 < first < len(raw):
            check(raw[:first])
            raw += stream.read(most + 1 - len(raw))
        if len(raw) > most:
            _drain(stream, DRAINED * most)
            raise Fault(413, _TOO_LARGE, f"The body is above the limit of {most} bytes")
        return raw
    except OSError as error:
        raise Fault(408, "HTTPRequestTimeout", "The body did not arrive in time") from error
    except ValueError as error:  # Another WSGI server's, for a malformed chunk.
        raise bad_request("The body is malformed") from error


def _drain(stream: _Readable, most: int) -> None:
    while most > 0 and (piece := stream.read(_PIECE)):
        most -= len(piece)


def read_body(req: falcon.Request, most: int, *, any_type: bool = False) -> Json:
    """Return the parsed body of a POST, PUT or PATCH; None without one.

    :param most: bytes.
    :param any_type: accept any content type: curl and cfn-signal send JSON as a form.
    :raises Fault: 400, 408, 413 or 415.
    """
    raw = read_raw(req, most)
    if not raw.strip():
        return None
    kind = (req.content_type or "").partition(";")[0].strip().lower()
    # As in Heat.  Without asking, a browser sends such bodies for foreign pages, but no token with them.
    is_plain = kind in ("", "text/plain") and raw.startswith(b"{") and req.get_header(TOKEN_HEADER)
    if kind != "application/json" and not any_type and not is_plain:
        sent = kind or "of no type: send Content-Type: application/json"
        raise Fault(415, "HTTPUnsupportedMediaType", f"The body must be application/json, not {sent}")
    return parse(raw)


def parse(raw: bytes) -> Json:
    """Parse JSON as RFC 8259 defines it: no NaN, no Infinity.

    :raises Fault: 400.
    """
    try:
        value = json.loads(raw.decode(), parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"JSON body malformed: {error}") from error
    check_depth(value)
    if b"\\u" in raw:  # Only an escape can bring them in.
        check_texts(value)
    return value


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits:.40} is too large")
    return value


def check_depth(value: Json) -> None:
    """Refuse values so deep that a walk through them could run out of stack.

    :raises Fault: 400.
    """
    level = [value]
    depth = 0
    while level := [
        inner
        for item in level
        if isinstance(item, Mapping | list)
        for inner in (item.values() if isinstance(item, Mapping) else item)
    ]:
        depth += 1
        if depth > MAX_DEPTH:
            raise bad_request(f"JSON body malformed: it is deeper than {MAX_DEPTH} levels")


def check_texts(body: Json) -> None:
    """Refuse texts that are not Unicode, and NUL characters but in the contents of files.

    :raises Fault: 400, with the path.
    """
    for path, text in _texts(body, ()):
        where = ".".join(path) or "the body"
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise bad_request(f"{_place(where)}: a text must be Unicode, not half of a surrogate pair")
        if "\0" in text and path[:1] != ("files",):
            raise bad_request(f"{_place(where)}: a text must not hold a NUL character")


def _texts(value: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield path, key
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, str(index)))


def _place(path: str) -> str:
    return path.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")
