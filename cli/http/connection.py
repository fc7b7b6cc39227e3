"""One connection of the HTTP server: its deadlines, and its end after a request was refused."""

import contextlib
import ipaddress
import logging
import socket
import typing
from collections.abc import Callable

from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask

from .limits import ConnectionLimits
from .polled import PolledMap
from .request import Parser, Refusal, late

LOG = logging.getLogger(__name__)
LINGER = 5.0
"""Seconds for which a refused client's further data is discarded.  If the connection were closed at once, the
client would see that instead of the response."""
PIECE = 65536


class Owner(typing.Protocol):
    """The server of a connection."""

    adj: typing.Any
    parser_class: type[Parser]
    monotonic: Callable[[], float]


class _RefusalTask(ErrorTask):
    """Answers with a refusal, and logs it."""

    def execute(self) -> None:
        """Log and send the refusal; waitress calls it."""
        error = self.request.error
        # Without the text, which may repeat a header field.
        LOG.info("Refused a request from %s: %s %s", self.channel.addr[0], error.code, error.reason)
        super().execute()


class _AnswerTask(WSGITask):
    """Sends the head of an answer together with the beginning of its body: one call less of the system."""

    channel: "Channel"
    wrote_header: bool

    def write(self, data: bytes) -> None:
        """Send a part of the body; waitress and the application call it."""
        if not data or not self.complete or self.wrote_header:
            super().write(data)
            return
        self.channel.head = self.build_response_header()
        self.wrote_header = True
        try:
            super().write(data)
        finally:
            head = self.channel.head
            self.channel.head = b""  # It must not be in the next answer.
        if head:  # The answer has no body.
            self.channel.write_soon(head)


class Channel(HTTPChannel):
    """One connection.

    The thread that serves all connections reads and writes; a worker runs `service` while `requests` is not
    empty, and the other thread reads nothing then.
    """

    parser_class: type[Parser]
    error_task_class = _RefusalTask
    task_class = _AnswerTask
    request: Parser | None
    will_close: bool
    close_when_flushed: bool

    def __init__(self, server: Owner, sock: socket.socket, addr: typing.Any, polled: PolledMap) -> None:
        self.parser_class = server.parser_class
        self.client = client_of(addr)
        self._monotonic = server.monotonic
        self._progress = self._monotonic()
        self._begun: float | None = None
        self._refused = False
        self._lingers_until: float | None = None
        self._polled = polled
        self.head = b""
        super().__init__(server, sock, addr, server.adj, map=polled)

    @property
    def in_progress(self) -> bool:
        """Return whether a request waits for a worker thread, or runs in one."""
        return bool(self.requests)

    @property
    def waits_since(self) -> float:
        """Return the server's last progress for this client, in seconds of its clock."""
        return self._progress

    def received(self, data: bytes) -> bool:
        """Take data that has arrived; waitress calls it."""
        if self._begun is None:
            self._begun = self._monotonic()
        accepted = bool(super().received(data))
        if self.requests:
            self._begun = None
            self._refused = self._refused or self.requests[-1].error is not None
        return accepted

    def service(self) -> None:
        """Answer a request; a worker thread of waitress calls it."""
        with self._polled.answering(self._fileno):
            super().service()
        self._progress = self._monotonic()

    def write_soon(self, data: typing.Any) -> int:
        """Send data, and before it the head of the answer if that has not been sent; waitress calls it."""
        head = self.head
        self.head = b""
        if head and len(data) > PIECE:  # A copy would cost more.
            super().write_soon(head)
        elif head:
            data = head + data
        return int(super().write_soon(data))

    def _flush_some(self, do_close: bool = True) -> bool:
        sent = bool(super()._flush_some(do_close=do_close))
        if sent:
            self._progress = self._monotonic()
        return sent

    def handle_expt(self) -> None:
        """Close the connection on urgent data, which has no meaning, and is reported until it is read."""
        self.handle_close()

    def handle_write(self) -> None:
        """Send data; after a refusal close the connection for writing first."""
        if self._refused and self.close_when_flushed and self._lingers_until is None:
            self._flush_exception(self._flush_some)
            if not self.total_outbufs_len and not self.will_close:
                self._lingers_until = self._monotonic() + LINGER
                self.close_when_flushed = False
                with contextlib.suppress(OSError):
                    self.socket.shutdown(socket.SHUT_WR)
                return
        super().handle_write()

    def readable(self) -> bool:
        """Return whether the connection is read; waitress calls it."""
        if self._lingers_until is not None:
            return not self.will_close
        return bool(super().readable())

    def handle_read(self) -> None:
        """Read data; after a refusal discard it."""
        if self._lingers_until is None:
            super().handle_read()
            return
        try:
            self.recv(PIECE)  # Closes the connection at its end.
        except OSError:
            self.handle_close()

    def expire(self, now: float, limits: ConnectionLimits) -> None:
        """Close the connection, or refuse its request, after a limit; the thread of all connections calls it.

        :param now: seconds of the server's clock.
        """
        if self.requests:
            return
        if self._lingers_until is not None:
            self.will_close = self.will_close or now > self._lingers_until
        elif self.total_outbufs_len or self._begun is None:
            self.will_close = self.will_close or now - self._progress > limits.idle
        elif now - self._begun > limits.request:
            self._refuse_late(late(limits.request))

    def refuse(self, answer: Refusal) -> None:
        """Refuse the request that is next; before a worker has it."""
        self.requests[0].refuse(answer)
        self._refused = True

    def _refuse_late(self, answer: Refusal) -> None:
        with self.requests_lock:
            request = self.request or self.parser_class(self.adj)
            request.refuse(answer)
            self.request = None
            self._begun = None
            self._refused = True
            self.requests.append(request)
        self.server.add_task(self)


def client_of(addr: typing.Any) -> str:
    """Return the client for a limit: its IPv4 address, or the network of its IPv6 address."""
    address = ipaddress.ip_address(str(addr[0]).partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
