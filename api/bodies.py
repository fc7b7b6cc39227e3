"""Reads the bodies of requests within their limit.

oslo.middleware's sizelimit is no replacement.  It answers 413 as plain text, not in Heat's shape.  It does
not read the rest of the body, so a client that still sends sees a broken pipe in place of the reason.
"""

import typing
from collections.abc import Callable

import falcon

from .errors import Fault, bad_request

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
