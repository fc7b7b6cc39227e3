"""Serving a WSGI application over HTTP."""

import http.client
import socket
import sys
import threading
import time
import typing
from collections.abc import Callable

from .limits import ConnectionLimits, RequestLimits
from .server import WaitressServer

STOPS_WITHIN = 5.0
"""Seconds that requests in progress are given at a stop."""
SWITCH_INTERVAL = 0.0005
"""Seconds after which a Python thread lets another one run.  A request that is compiled computes without a
pause, and each step of a health check waits for the threads of all of them in turn: beside 16 such requests
it takes 1 s and more with Python's own 0.005 s, and half of it with this.
"""


class HttpServer:
    """An HTTP server with a thread of its own.

    Its start sets SWITCH_INTERVAL, for all threads of the process.

    :param threads: requests answered at the same time.
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
    ) -> None:
        self._app = app
        self._address = (host, port)
        self._threads = threads
        self._requests = requests or RequestLimits()
        self._connections = connections or ConnectionLimits()
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
            self._app, sock, threads=self._threads, requests=self._requests, connections=self._connections
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
            ours, theirs = socket.socketpair()
        except OSError:
            return False
        self._server.connect(theirs)
        ours.settimeout(within)
        probe = http.client.HTTPConnection("localhost")
        probe.sock = ours
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
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    everywhere = family == socket.AF_INET6 and address[0] == "::"
    return socket.create_server(
        address[:2], family=family, backlog=1024, dualstack_ipv6=everywhere and socket.has_dualstack_ipv6()
    )


def silence(
    answers: Callable[[], bool], monotonic: Callable[[], float] = time.monotonic
) -> Callable[[float], list[str]]:
    """For `waiting.stay`: whether the server has not answered for too long, by asking it."""
    answered = [monotonic()]

    def late(grace: float) -> list[str]:
        if answers():
            answered[0] = monotonic()
        return ["the HTTP server"] if monotonic() - answered[0] > grace else []

    return late
