"""The API while strangers attack it: it answers, and its memory stays what it was."""

import contextlib
import pathlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import requests
from client.serving import Service
from harness import pace

MEGABYTE = 1 << 20
HOST = b"Host: localhost\r\n"
ENDLESS = {
    "a body of 1.5 GB to nobody": b"POST /nothing HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 1500000000\r\n\r\n",
    "a body of 1.5 GB in parts": b"POST /v1/t/stacks HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n59682f00\r\n",
    "a request line": b"GET /",
    "a header field": b"GET / HTTP/1.1\r\nX: ",
    "a chunk's extension": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;",
}
QUIET = [b"", b"GET / HT", b"POST /v1/t/stacks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("attacked"), conductors=1)
    try:
        yield running
    finally:
        running.stop()


def resident(service: Service) -> int:
    """Bytes of memory of the process."""
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def connect(service: Service) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def flood(service: Service, head: bytes, ends: threading.Event) -> None:
    """Send until the server closes, again and again."""
    while not ends.is_set():
        with contextlib.suppress(OSError), connect(service) as client:
            client.sendall(head)
            for _ in range(1500):
                client.sendall(b"x" * MEGABYTE)
                if ends.is_set():
                    break


@pytest.mark.alone
def test_health_and_others_are_answered_and_memory_is_bounded(service: Service) -> None:
    path = service.created("t", "s", {"heat_template_version": "2018-08-31", "resources": {}})
    before = resident(service)
    worst = 0
    slowest = 0.0
    ends = threading.Event()
    before_it = pace.measure()
    quiet = [connect(service) for _ in range(80)]
    for number, client in enumerate(quiet):
        client.sendall(QUIET[number % len(QUIET)])
    floods = [threading.Thread(target=flood, args=(service, head, ends)) for head in ENDLESS.values()]
    for thread in floods:
        thread.start()
    try:
        for _ in range(60):
            began = time.monotonic()
            assert requests.get(f"{service.url}/healthcheck", timeout=60).status_code == 200
            slowest = max(slowest, time.monotonic() - began)
            assert service.get(path)["stack"]["stack_name"] == "s"
            worst = max(worst, resident(service))
            time.sleep(0.05)
    finally:
        ends.set()
        for thread in floods:
            thread.join()
        for client in quiet:
            client.close()
    assert slowest < before_it.worse(pace.measure()).wall
    assert worst - before < 60 * MEGABYTE
