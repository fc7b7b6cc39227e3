"""The parser of HTTP requests: waitress's, with limits and stricter checks."""

import http
import json
import typing
import uuid

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest, Error

from ...api.errors import NO_SNIFFING, Fault
from .limits import RequestLimits

SINGLE = frozenset({b"host", b"content-length", b"transfer-encoding", b"content-type"})
"""Header fields that may occur once: of two, a proxy could use the one that this server ignores."""
CONTROL_LINE = 256
TRAILER = 4096
"""Maximum bytes of the line before a chunk, and of the trailer after the last one."""


class Refusal(Error):
    """An error of the server itself, in the shape of the API's errors; then the connection closes."""

    def __init__(self, status: int, message: str, kind: str = "HTTPBadRequest") -> None:
        super().__init__(message)
        self.code = status
        self.reason = http.HTTPStatus(status).phrase
        self.kind = kind
        self.message = message

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """Return the status, headers and body; waitress calls it to answer."""
        headers = [
            ("Content-Type", "application/json"),
            ("X-Openstack-Request-Id", f"req-{uuid.uuid4()}"),
            NO_SNIFFING,
        ]
        body = json.dumps(Fault(self.code, self.kind, self.message).body()).encode("ascii")
        return f"{self.code} {self.reason}", headers, body


class _Refused(Exception):
    """The request is not read any further."""

    def __init__(self, answer: Refusal) -> None:
        super().__init__(answer.message)
        self.answer = answer


def too_large(most: int, length: int | None = None) -> Refusal:
    """Return the answer to a body above the limit."""
    has = "is" if length is None else f"has {length} bytes,"
    return Refusal(413, f"The body {has} above the limit of {most}", "RequestLimitExceeded")


def late(seconds: float) -> Refusal:
    """Return the answer to a request that takes too long to arrive."""
    return Refusal(408, f"The request did not arrive within {seconds:g} seconds", "HTTPRequestTimeout")


def check_head(head: bytes, limits: RequestLimits) -> None:
    """Check the limits, and refuse requests that two servers could read differently; waitress does not.

    :raises _Refused: the request is refused, with the answer.
    """
    line, *fields = head.rstrip(b"\r\n").split(b"\r\n")
    _check_line(line, len(fields), limits)
    names = _names_of(fields)
    if {b"content-length", b"transfer-encoding"} <= names:
        raise _Refused(Refusal(400, "Content-Length and Transfer-Encoding in one request"))
    _check_version(line, names)


def _check_line(line: bytes, fields: int, limits: RequestLimits) -> None:
    if len(line) > limits.line:
        raise _Refused(Refusal(414, f"The request line is above the limit of {limits.line} bytes"))
    if fields > limits.fields:
        raise _Refused(Refusal(431, f"More than {limits.fields} header fields"))
    if any(byte < 0x20 or byte == 0x7F for byte in line):
        raise _Refused(Refusal(400, "The request line contains a control character"))


def _names_of(fields: list[bytes]) -> set[bytes]:
    """Return the names of header fields, in lower case."""
    names: set[bytes] = set()
    for field in fields:
        if field[:1] in (b" ", b"\t"):
            raise _Refused(Refusal(400, "A header line begins with a space"))
        name = field.partition(b":")[0].lower()
        if name in names and name in SINGLE:
            raise _Refused(Refusal(400, f"More than one header field {name.decode('ascii')}"))
        names.add(name)
    return names


def _check_version(line: bytes, names: set[bytes]) -> None:
    """Check that the header fields fit the version of HTTP."""
    if line.endswith(b" HTTP/1.1"):
        if b"host" not in names:
            raise _Refused(Refusal(400, "The header field Host is missing"))
    elif not line.endswith(b" HTTP/1.0"):
        raise _Refused(Refusal(505, "Only HTTP/1.0 and HTTP/1.1 are supported"))
    elif b"transfer-encoding" in names:
        raise _Refused(Refusal(400, "HTTP/1.0 does not support Transfer-Encoding"))


class _Chunks(ChunkedReceiver):
    """A chunked body with a limit on its framing."""

    def received(self, s: bytes) -> int:
        """Take a part of the body; waitress calls it."""
        consumed = super().received(s)
        if len(self.control_line) > CONTROL_LINE or len(self.trailer) > TRAILER:
            self.error = BadRequest("Invalid chunk")
        return int(consumed)


class Parser(HTTPRequestParser):
    """One request as it arrives, in the thread that serves all connections.

    A body up to ``inbuf_overflow`` bytes stays in memory, a longer one goes to a temporary file.
    """

    limits = RequestLimits()
    completed: bool
    chunked: bool
    expect_continue: bool
    error: typing.Any
    path: str
    body_rcv: typing.Any

    def received(self, data: bytes) -> int:
        """Take data that has arrived, and return how much of it is used: all, once the request is refused.

        Waitress calls it.
        """
        try:
            consumed = int(super().received(data))
        except _Refused as refused:
            return self._refuse(refused.answer, data)
        except ValueError as error:  # An address or a number that the standard library rejects.
            return self._refuse(Refusal(400, f"Malformed request: {error}"), data)
        if self.error is None and self.chunked and len(self.body_rcv) > self.limits.body:
            return self._refuse(too_large(self.limits.body), data)
        if self.error is not None and not isinstance(self.error, Refusal):
            return self._refuse(_named(self.error, self.limits), data)
        if self.completed:
            self.expect_continue = False  # Else waitress would wait for a body that does not come.
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Check and parse the head; waitress calls it."""
        if self.header_bytes_received < self.limits.head:  # Else waitress puts a placeholder here.
            check_head(header_plus, self.limits)
        super().parse_header(header_plus)
        if not self.path.startswith("/"):
            if self.path or not self.proxy_netloc:
                raise ParsingError("The request target is not a path")
            self.path = "/"
        if self.content_length > self.limits.body:
            raise _Refused(too_large(self.limits.body, self.content_length))
        if self.chunked:
            self.body_rcv = _Chunks(OverflowableBuffer(self.adj.inbuf_overflow))

    def refuse(self, answer: Refusal) -> None:
        """Answer this request with an error, and ignore the rest of it."""
        self._refuse(answer, b"")

    def _refuse(self, answer: Refusal, data: bytes) -> int:
        self.error = answer
        self.completed = True
        self.expect_continue = False
        self.close()
        self.body_rcv = None
        return len(data)


def _named(error: typing.Any, limits: RequestLimits) -> Refusal:
    """Return an error of waitress as one of the API's."""
    if error.code == 413:
        return too_large(limits.body)
    if error.code == 431:
        return Refusal(431, f"Request line and header fields are above the limit of {limits.head} bytes")
    return Refusal(error.code, str(error.body))
