"""Serving a WSGI application over HTTP."""

import http.client
import threading
import time
import typing
from collections.abc import Callable

from cheroot import wsgi

WAITING_CONNECTIONS = 1024
"""New connections that the system keeps until they are looked at; more are refused.  cheroot's default, 5,
refuses some of twenty clients that come at once."""


class HttpServer:
    """cheroot in a thread of its own.

    :param threads: requests answered at the same time.
    """

    def __init__(self, app: typing.Any, *, host: str, port: int, threads: int) -> None:
        self._server = wsgi.Server(
            (host, port),
            app,
            numthreads=threads,
            server_name="stoker",
            request_queue_size=WAITING_CONNECTIONS,
        )
        self._thread = threading.Thread(target=self._server.serve, name="http", daemon=True)

    def start(self) -> int:
        """Listen; the port (chosen by the system if 0 was asked for).

        :raises OSError: the address is in use, or not ours.
        """
        self._server.prepare()
        self._thread.start()
        return int(self._server.bind_addr[1])

    def answers(self, within: float) -> bool:
        """Whether a request is answered in so many seconds: the one for the API's versions, which needs
        neither a database nor a right."""
        host, port = self._server.bind_addr[:2]
        probe = http.client.HTTPConnection(str(host), int(port), timeout=within)
        try:
            probe.request("GET", "/")
            return probe.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            probe.close()

    def stop(self) -> None:
        """Answer the requests in progress, and end."""
        self._server.stop()
        self._thread.join(5)


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
