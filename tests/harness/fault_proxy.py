"""A proxy before an HTTP service that answers badly, late or not at all now and then."""

import collections
import contextlib
import enum
import http.server
import random
import socket
import threading
import time
import typing
from collections.abc import Sequence

import requests
from harness.ports import HOST

_OWN = frozenset({"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive"})
"""Headers of one connection or of one way to send a body; all others are passed on."""


class Fault(enum.StrEnum):
    """Fate of a request."""

    ERROR = "500, not passed on"
    UNAVAILABLE = "503, not passed on"
    BUSY = "429 with Retry-After, not passed on"
    DROPPED = "the connection is closed, not passed on"
    LOST = "the connection is closed instead of the answer"
    HUNG = "no answer, not passed on"
    LATE = "no answer, and passed on once the client has gone"
    DENIED = "401, not passed on"
    TIMED_OUT = "504 instead of the answer"
    TWICE = "passed on twice"
    HALF = "half of the answer, and the connection is closed"


USUAL = tuple(
    fault for fault in Fault if fault not in (Fault.DENIED, Fault.TIMED_OUT, Fault.TWICE, Fault.HALF)
)
"""Faults that every service of a cloud must expect; the others are for services that know keys."""
_STATUS = {Fault.ERROR: 500, Fault.UNAVAILABLE: 503, Fault.BUSY: 429, Fault.DENIED: 401}


class BusyServer(http.server.ThreadingHTTPServer):
    """A server to which many connect at once, as after a conductor's death.

    Whom a short queue has no room for, the kernel lets wait for seconds.
    """

    daemon_threads = True
    request_queue_size = 512


class FaultProxy:
    """Passes requests on, and does something else with some of them while `faulty` is set.

    :param target: root of the service.
    :param seed: seed of the choice of requests and faults.
    :param share: share of the requests that meet a fault.
    :param hangs: seconds without an answer; more than clients wait.
    :ivar counts: number of requests by fault.
    """

    def __init__(
        self,
        target: str,
        *,
        seed: int,
        share: float,
        hangs: float,
        faults: Sequence[Fault] = USUAL,
    ) -> None:
        self.faulty = threading.Event()
        self.counts: collections.Counter[str] = collections.Counter()
        self._random = random.Random(seed)
        self._share = share
        self._hangs = hangs
        self._faults = faults
        self._lock = threading.Lock()
        self._under_way = 0
        self._server = BusyServer((HOST, 0), _handler(self, target))
        self.url = f"http://{HOST}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def calm(self) -> None:
        """Pass all on from now on, and wait until no request is under way, late ones included."""
        self.faulty.clear()
        while self._under_way:
            time.sleep(0.02)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()

    def chosen(self, method: str, path: str) -> Fault | None:
        """Choose what becomes of the next request; None: it is passed on, and answered."""
        with self._lock:
            if not self.faulty.is_set() or self._random.random() >= self._share:
                return None
            fault = self._random.choice(self._faults)
            self.counts[fault.name] += 1
            return fault

    @contextlib.contextmanager
    def under_way(self) -> typing.Iterator[None]:
        """Count a request until it has ended, for `calm`."""
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def hang(self) -> None:
        """Wait until the client has gone."""
        time.sleep(self._hangs)


class LateProxy(FaultProxy):
    """Passes each change on once its client has stopped waiting, and its repetition at once.

    Changes of the same path are one, whatever their bodies are.
    """

    def __init__(self, target: str, *, hangs: float) -> None:
        super().__init__(target, seed=0, share=1.0, hangs=hangs)
        self._late_calls: set[tuple[str, str]] = set()

    def chosen(self, method: str, path: str) -> Fault | None:
        """Choose the fault of a change that comes for the first time."""
        with self._lock:
            change = (method, path.partition("?")[0])
            if method == "GET" or not self.faulty.is_set() or change in self._late_calls:
                return None
            self._late_calls.add(change)
            self.counts[Fault.LATE.name] += 1
            return Fault.LATE


def _handler(proxy: FaultProxy, target: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        session: requests.Session

        def setup(self) -> None:
            """Each connection has one of its own to the service."""
            super().setup()
            self.session = requests.Session()

        def handle(self) -> None:
            """Serve the requests of a connection; that of a client that was killed ends anyhow."""
            with contextlib.suppress(OSError):
                super().handle()

        def serve(self) -> None:
            """Do with one request what is chosen for it."""
            with proxy.under_way(), contextlib.suppress(OSError):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy.chosen(self.command, self.path)
                if fault in _STATUS:
                    self._fail(_STATUS[fault])
                elif fault in (None, Fault.TWICE, Fault.HALF, Fault.TIMED_OUT):
                    self._pass_on(body, fault)
                else:
                    if fault in (Fault.HUNG, Fault.LATE):
                        proxy.hang()
                    if fault in (Fault.LOST, Fault.LATE):
                        self._passed_on(body)
                    self._cut()

        def _pass_on(self, body: bytes, fault: Fault | None) -> None:
            if fault == Fault.TWICE:
                self._passed_on(body)
            response = self._passed_on(body)
            if fault == Fault.TIMED_OUT:
                self._fail(504)
            elif fault == Fault.HALF:
                self._answer(response, part=len(response.content) // 2)
                self._cut()
            else:
                self._answer(response)

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _passed_on(self, body: bytes) -> requests.Response:
            # With its Host: so the addresses in answers are the proxy's.
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            url = target + self.path
            headers = {**headers, "Accept-Encoding": "identity"}
            return self.session.request(
                self.command, url, data=body, headers=headers, timeout=120, allow_redirects=False
            )

        def _answer(self, response: requests.Response, *, part: int | None = None) -> None:
            self.send_response(response.status_code)
            for name, value in response.headers.items():
                if name.lower() not in (*_OWN, "date", "server"):
                    self.send_header(name, value)
            self._end(response.content, part=part)

        def _fail(self, status: int) -> None:
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "1")
            self._end(b'{"error": {"message": "a fault of the test"}}')

        def _end(self, body: bytes, *, part: int | None = None) -> None:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:part])

        def log_message(self, *args: typing.Any) -> None:
            """It says nothing."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
        setattr(Handler, f"do_{method}", Handler.serve)
    return Handler
