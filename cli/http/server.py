"""The HTTP server of a WSGI application.

It is waitress with deadlines, limits of connections, a thread for health checks, and an orderly stop.
"""

import contextlib
import errno
import http.client
import logging
import socket
import sys
import threading
import time
import typing
from collections import Counter
from collections.abc import Callable

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from .connection import Channel, client_of
from .limits import ConnectionLimits, Fairness, RequestLimits
from .polled import PolledMap
from .request import Parser, Refusal
from .workers import BEGINS_FOR, Workers

LOG = logging.getLogger(__name__)
HEALTH = "/healthcheck"
IN_MEMORY = 262144
"""Bytes of a body that are kept in memory; a longer body goes to a temporary file."""
NEVER = 1 << 62
"""A watermark that is never reached: a file keeps a long answer, so no worker waits for a slow client."""
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PIECE = 65536
TURN = 0.5
"""Seconds between two checks of the deadlines."""
REPEAT = 60.0
"""Seconds between two log messages about refused connections."""

YIELDS_FOR = 0.005
"""Seconds at most for which a process leaves a new connection to another one that has fewer of them."""
YIELDS_HALF = 8
"""Connections with which it leaves one for half of that time.

The kernel wakes all processes, and the one that has just worked is the first.  So of connections that come
one after the other it could get them all, and would answer alone while the others rest.
"""
STOPS_WITHIN = 5.0
"""Seconds that running requests get at a stop."""
SWITCH_INTERVAL = 0.0005
"""Seconds after which a Python thread lets another one run.

A request that is compiled computes without a pause, and each step of a health check waits for all such
threads in turn.  Beside 16 such requests a check takes 1 s and more with Python's 0.005 s, half of it with
this.
"""


class WaitressServer(TcpWSGIServer):
    """Listens, and serves all connections in one thread (`run_once`); workers call the application.

    Requests for ``/healthcheck`` have a worker of their own, and so have answers to requests
    that no worker handles.

    :param sock: the socket, bound to its address.
    :param fairness: the shares of projects; None: all requests count as those of one, which has all threads.
    :param is_shared: whether other processes accept connections from the socket, too.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self,
        app: typing.Any,
        sock: socket.socket,
        *,
        threads: int,
        requests: RequestLimits,
        connections: ConnectionLimits,
        fairness: Fairness | None = None,
        is_shared: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.monotonic = monotonic
        self._is_shared = is_shared
        self._yields_until: float | None = None
        self._fairness = fairness
        self.parser_class = type("LimitedParser", (Parser,), {"limits": requests})
        self._limits = connections
        self._health = Workers("health", 1)
        self._next_turn = 0.0
        self._accepts_at = 0.0
        self._told = -REPEAT
        self._ended = False
        self._ends = threading.Lock()
        self.beat = monotonic()
        adjustments = Adjustments(
            sockets=[sock],
            ident="stoker",
            threads=threads,
            max_request_header_size=requests.head,
            max_request_body_size=2 * requests.body + PIECE,  # With the framing of chunks.
            inbuf_overflow=IN_MEMORY,
            outbuf_high_watermark=NEVER,
            asyncore_use_poll=True,
            backlog=1024,
            server_name="stoker",
            clear_untrusted_proxy_headers=False,
        )
        info = (sock.family, sock.type, sock.proto, sock.getsockname())
        workers = Workers("api", threads, None if fairness is None else fairness.share)
        self._polled = PolledMap()
        super().__init__(
            app, self._polled, True, sock, workers, adjustments, sockinfo=info, bind_socket=False
        )

    def run_once(self) -> None:
        """Serve the connections that are ready, or wait for one, TURN seconds at most."""
        now = self.monotonic()
        if now >= self._next_turn:
            self._next_turn = now + TURN
            for channel in list(self.active_channels.values()):
                channel.expire(now, self._limits)
            self._polled.touch_all()
        waits = self.task_dispatcher.waits
        yields = TURN if self._yields_until is None else max(0.0, self._yields_until - now)
        self._polled.serve(min(BEGINS_FOR if waits else TURN, yields))
        if waits:
            self.task_dispatcher.look()
        if self._yields_until is not None and self.monotonic() >= self._yields_until:
            self._accept_left()
        self.beat = self.monotonic()

    def add_task(self, task: Channel) -> None:
        """Queue a request for a worker thread; waitress calls it."""
        request = task.requests[0]
        path = getattr(request, "path", "")
        project = "" if self._fairness is None else self._fairness.project_of(path)
        if request.error is None and self._is_crowded(project):
            task.refuse(
                Refusal(429, "Too many requests of this project wait; try again later", "TooManyRequests")
            )
        if request.error is not None or path.rstrip("/") == HEALTH:
            self._health.add(task)
        else:
            self.task_dispatcher.add(task, project)

    def _is_crowded(self, project: str) -> bool:
        if self._fairness is None or not self._fairness.most_waiting:
            return False
        return bool(self.task_dispatcher.waiting_of(project) >= self._fairness.most_waiting)

    def readable(self) -> bool:
        """Return whether a connection can be accepted; asked at least once in TURN seconds."""
        return bool(self.accepting) and self.monotonic() >= self._accepts_at and self._yields_until is None

    def handle_accept(self) -> None:
        """Accept a connection, or leave it to a process with fewer for a moment; waitress calls it."""
        count = len(self.active_channels)
        if self._is_shared and count:
            self._yields_until = self.monotonic() + YIELDS_FOR * count / (count + YIELDS_HALF)
        else:
            self._accept()

    def _accept_left(self) -> None:
        """Accept connections that no other process has accepted meanwhile, more of them if there are many."""
        self._yields_until = None
        self._polled.touch(self._fileno)
        for _ in range(1 + len(self.active_channels) // YIELDS_HALF):
            if not self.accepting or not self._accept():
                break

    def _accept(self) -> bool:
        """Accept a connection; return False if there is none."""
        try:
            sock, addr = self.socket.accept()
        except OSError as error:
            if error.errno in EXHAUSTED:
                self._warn("Cannot accept connections: %s", error)
                self._accepts_at = self.monotonic() + TURN
            return False
        try:
            sock.setblocking(False)
            self.set_socket_options(sock)
            if self._has_room(client_of(addr)):
                Channel(self, sock, addr, self._polled)
            else:
                self._turn_away(sock, addr)
        except OSError:  # The client has gone already.
            sock.close()
        return True

    def connect(self, sock: socket.socket) -> None:
        """Serve a connection from within the process; any thread may call it."""
        sock.setblocking(False)
        self.trigger.pull_trigger(lambda: Channel(self, sock, ("127.0.0.1", 0), self._polled))

    def _has_room(self, client: str) -> bool:
        per_client = Counter(channel.client for channel in self.active_channels.values())
        if 0 < self._limits.per_address <= per_client[client]:
            return False
        if len(self.active_channels) < self._limits.total:
            return True
        waiting = [channel for channel in self.active_channels.values() if not channel.in_progress]
        if not waiting:
            return False
        min(waiting, key=lambda channel: channel.waits_since).handle_close()
        return True

    def _turn_away(self, sock: socket.socket, addr: typing.Any) -> None:
        answer = Refusal(503, "Too many connections; try again later", "ServiceUnavailable")
        status, headers, body = answer.to_response()
        lines = [f"{name}: {value}" for name, value in headers]
        head = "\r\n".join(
            [f"HTTP/1.1 {status}", *lines, f"Content-Length: {len(body)}", "Connection: close"]
        )
        self._warn(
            "Refused a connection from %s: there are %s connections", addr[0], len(self.active_channels)
        )
        with contextlib.suppress(OSError):
            sock.send(f"{head}\r\n\r\n".encode("ascii") + body)
            sock.shutdown(socket.SHUT_WR)
        sock.close()

    def _warn(self, text: str, *values: object) -> None:
        if self.monotonic() - self._told >= REPEAT:
            self._told = self.monotonic()
            LOG.warning(text, *values)

    def handle_error(self) -> None:
        """Log that a connection could not be accepted; the next one may be."""
        LOG.exception("Cannot accept a connection")

    def pull_trigger(self) -> None:
        """Wake the server's thread; any thread may call it, also a worker that ends after the server."""
        with self._ends:
            if not self._ended:
                super().pull_trigger()

    def stop(self, within: float) -> None:
        """Close the listening socket, answer the requests that have arrived, and end.

        :param within: the seconds after which unanswered requests are dropped.
        """
        until = self.monotonic() + within
        self.accepting = False
        self.del_channel()
        self.socket.close()
        while self._busy() and self.monotonic() < until:
            self.run_once()
        for workers in (self.task_dispatcher, self._health):
            workers.shutdown(timeout=1)
        with self._ends:
            self._ended = True
            wasyncore.close_all(self._map, ignore_all=True)

    def _busy(self) -> bool:
        return any(
            channel.in_progress or channel.total_outbufs_len for channel in self.active_channels.values()
        )


class HttpServer:
    """An HTTP server with a thread of its own.

    Its start sets SWITCH_INTERVAL, for all threads of the process.

    :param threads: requests answered at the same time.
    :param fairness: the shares of projects; None: all requests count as those of one, which has all threads.
    """

    def __init__(
        self,
        app: typing.Any,
        *,
        host: str,
        port: int,
        threads: int,
        requests: RequestLimits | None = None,
        connections: ConnectionLimits | None = None,
        fairness: Fairness | None = None,
    ) -> None:
        self._app = app
        self._address = (host, port)
        self._threads = threads
        self._requests = requests or RequestLimits()
        self._connections = connections or ConnectionLimits()
        self._fairness = fairness
        self._server: WaitressServer | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self, listener: socket.socket | None = None) -> int:
        """Listen, and return the port (chosen by the system if 0 was asked for).

        :param listener: a socket that listens already, shared with other processes.
        :raises OSError: the address is in use, or not ours.
        """
        sock = listener or listen(*self._address)
        self._server = WaitressServer(
            self._app,
            sock,
            threads=self._threads,
            requests=self._requests,
            connections=self._connections,
            fairness=self._fairness,
            is_shared=listener is not None,
        )
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()
        return int(sock.getsockname()[1])

    def _run(self) -> None:
        assert self._server is not None
        while not self._ends.is_set():
            self._server.run_once()
        self._server.stop(STOPS_WITHIN)

    def answers(self, within: float) -> bool:
        """Return whether this server answers a request within so many seconds.

        It is the request for the API's versions, which needs neither a database nor a right.  The request
        takes a connection of its own, for other processes may listen on the same port.
        """
        assert self._server is not None
        try:
            client, server = socket.socketpair()
        except OSError:
            return False
        self._server.connect(server)
        client.settimeout(within)
        probe = http.client.HTTPConnection("localhost")
        probe.sock = client
        try:
            probe.request("GET", "/")
            return probe.getresponse().status in (*range(500), 503)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            probe.close()

    def stop(self) -> None:
        """Answer the requests in progress, and end."""
        self._ends.set()
        if self._server is not None:
            self._server.pull_trigger()
            self._thread.join(2 * STOPS_WITHIN)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to the first address that the host's name stands for; ``::`` takes IPv4, too.

    :raises OSError: the address is in use, or not ours.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    everywhere = family == socket.AF_INET6 and address[0] == "::"
    return socket.create_server(
        address[:2], family=family, backlog=1024, dualstack_ipv6=everywhere and socket.has_dualstack_ipv6()
    )


def unanswered(
    answers: Callable[[], bool], monotonic: Callable[[], float] = time.monotonic
) -> Callable[[float], list[str]]:
    """Return a check, for `run_main_loop`, that names the HTTP server while it is silent for too long."""
    answered = [monotonic()]

    def late(grace: float) -> list[str]:
        if answers():
            answered[0] = monotonic()
        return ["the HTTP server"] if monotonic() - answered[0] > grace else []

    return late
