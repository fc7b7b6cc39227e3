"""The HTTP server against clients that mean no good: real sockets, one small application."""

import contextlib
import json
import pathlib
import random
import select
import socket
import threading
import time
import typing
from collections.abc import Callable, Iterator

import pytest
from harness.waiting import wait_for
from stoker.cli.http import connection, server
from stoker.cli.http.connection import client_of
from stoker.cli.http.limits import ConnectionLimits, Fairness, RequestLimits
from stoker.cli.http.server import HttpServer
from stoker.cli.http.workers import BEGINNING

HOST = b"Host: h\r\n"
SMALL = RequestLimits(head=4000, fields=20, body=1000)
MEGABYTE = 1 << 20
Json = typing.Any


class Site:
    """A server whose application notes what it is called with, and the clients of a test."""

    def __init__(
        self,
        threads: int,
        requests: RequestLimits,
        connections: ConnectionLimits,
        fairness: Fairness | None = None,
    ) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.gate = threading.Event()
        self.server = HttpServer(
            self._app,
            host="127.0.0.1",
            port=0,
            threads=threads,
            requests=requests,
            connections=connections,
            fairness=fairness,
        )
        self.port = self.server.start()
        self._open = contextlib.ExitStack()

    def _app(self, environ: Json, start_response: Json) -> list[bytes]:
        path = environ["PATH_INFO"]
        body = environ["wsgi.input"].read()
        self.requests.append((path, body[:1000]))
        if path.endswith("/gate"):
            self.gate.wait(60)
        answer = b"x" * 32 * MEGABYTE if path == "/big" else body[:1000] or b"ok"
        if path == "/empty":
            start_response("204 No Content", [])  # Its body is not sent.
        else:
            start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]

    def connect(self) -> socket.socket:
        client = self._open.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=60))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def send(self, data: bytes) -> socket.socket:
        client = self.connect()
        client.sendall(data)
        return client

    def waiting(self) -> int:
        """Return how many requests the server has read that no thread answers yet."""
        assert self.server._server is not None  # noqa: SLF001
        return len(self.server._server.task_dispatcher.queue)  # noqa: SLF001

    def limit(self, **limits: float) -> None:
        """Give the connections other limits, from now on."""
        assert self.server._server is not None  # noqa: SLF001
        self.server._server._limits = ConnectionLimits(**limits)  # type: ignore[arg-type]  # noqa: SLF001

    def close(self) -> None:
        self.gate.set()
        self._open.close()
        self.server.stop()


@pytest.fixture
def make_site() -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(
        threads: int = 2,
        requests: RequestLimits = SMALL,
        fairness: Fairness | None = None,
        **limits: float,
    ) -> Site:
        connections = ConnectionLimits(**limits)  # type: ignore[arg-type]
        sites.append(Site(threads, requests, connections, fairness))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site()


def status(client: socket.socket) -> int:
    """The status of the next answer, whose body is read, too; 0: the connection was closed without one."""
    return answer(client)[0]


def answer(client: socket.socket) -> tuple[int, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            piece = client.recv(1)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return 0, b""
        data += piece
    lines = data.split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length"))
    body = b""
    while len(body) < length:
        body += client.recv(length - len(body))
    return int(lines[0].split()[1]), body


def closed(client: socket.socket) -> bool:
    """Return whether the server closes the connection without a further answer."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def get(path: str = "/", more: bytes = b"") -> bytes:
    return b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + more + b"\r\n"


def post(more: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + HOST + more + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
REFUSED = {
    "two lengths": (post(b"Content-Length: 2\r\nContent-Length: 2\r\n", b"ab"), 400),
    "two lengths in one": (post(b"Content-Length: 2, 2\r\n", b"ab"), 400),
    "an underscore in a length": (post(b"Content-Length: 1_0\r\n", b"0123456789"), 400),
    "a plus": (post(b"Content-Length: +2\r\n", b"ab"), 400),
    "a minus": (post(b"Content-Length: -2\r\n", b"ab"), 400),
    "a length in Arabic digits": (post("Content-Length: ٢\r\n".encode(), b"ab"), 400),
    "a length of 5,000 digits": (get("/", b"Content-Length: " + b"9" * 3000 + b"\r\n"), 413),
    "an encoding beside a length": (post(b"Content-Length: 5\r\n" + CHUNKED, b"0\r\n\r\n"), 400),
    "a length beside an encoding": (post(CHUNKED + b"Content-Length: 5\r\n", b"0\r\n\r\n"), 400),
    "two encodings": (post(CHUNKED * 2, b"0\r\n\r\n"), 400),
    "an encoding that is not known": (post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), 501),
    "an encoding of identity": (post(b"Transfer-Encoding: identity\r\n"), 501),
    "an encoding in HTTP/1.0": (b"POST / HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "a vertical tab before an encoding": (post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"), 400),
    "a space before the colon": (post(b"Content-Length : 2\r\n", b"ab"), 400),
    "a first header line with a space": (b"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400),
    "a folded header line": (get("/", b"X-A: 1\r\n  2\r\n"), 400),
    "a line without a colon": (get("/", b"nonsense\r\n"), 400),
    "a bare line feed": (b"GET / HTTP/1.1\r\nHost: h\nX: 1\r\n\r\n", 400),
    "a bare carriage return": (b"GET / HTTP/1.1\r\nHost: h\rX: 1\r\n\r\n", 400),
    "a NUL in a header": (get("/", b"X-A: \0\r\n"), 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (get("/", HOST), 400),
    "a chunk of no size": (post(CHUNKED, b"\r\nxyz\r\n"), 400),
    "a chunk of a wrong size": (post(CHUNKED, b"zz\r\nab\r\n0\r\n\r\n"), 400),
    "a chunk with a sign": (post(CHUNKED, b"+2\r\nab\r\n0\r\n\r\n"), 400),
    "a chunk with an underscore": (post(CHUNKED, b"0_2\r\nab\r\n0\r\n\r\n"), 400),
    "a chunk with 0x": (post(CHUNKED, b"0x2\r\nab\r\n0\r\n\r\n"), 400),
    "a chunk that is longer than it says": (post(CHUNKED, b"2\r\nabcd\r\n0\r\n\r\n"), 400),
    "a chunk whose line has no end": (post(CHUNKED, b"1" * 600), 400),
    "an extension without an end": (post(CHUNKED, b"2;" + b"a" * 600), 400),
    "a trailer without an end": (post(CHUNKED, b"0\r\nX: " + b"a" * 4500), 400),
    "a giant chunk": (post(CHUNKED, b"ffffffffff\r\n" + b"x" * 1500), 413),
    "many chunks": (post(CHUNKED, b"64\r\n" + (b"x" * 100 + b"\r\n64\r\n") * 12), 413),
    "a giant length": (post(b"Content-Length: 1500000000\r\n"), 413),
    "a giant length, and the client waits": (
        post(b"Content-Length: 1500000000\r\nExpect: 100-continue\r\n"),
        413,
    ),
    "a long request line": (get("/" + "a" * 1000), 414),
    "a request line without an end": (b"GET /" + b"a" * 5000, 431),
    "a header without an end": (b"GET / HTTP/1.1\r\nX: " + b"a" * 5000, 431),
    "many headers": (get("/", b"X-A: 1\r\n" * 21), 431),
    "an older version": (b"GET /\r\n\r\n", 505),
    "another version": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "a version of two digits": (b"GET / HTTP/1.10\r\n" + HOST + b"\r\n", 505),
    "no version at all": (b"nonsense\r\n\r\n", 505),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "a method in small letters": (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a control character in the target": (b"GET /\x01 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a space in the target": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target that is no path": (b"GET stacks HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a star": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a target that Python does not take": (b"GET http://[ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
}


@pytest.mark.parametrize(("sent", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_a_malformed_request_is_refused_and_the_connection_closed(
    site: Site, sent: bytes, expected: int
) -> None:
    # The bytes after it must not be taken for a request.
    client = site.send(sent + get("/smuggled"))
    code, body = answer(client)
    assert code == expected, body
    document = json.loads(body)
    assert document["code"] == expected
    assert document["error"]["message"]
    assert closed(client)
    assert status(site.send(get("/next"))) == 200
    assert [path for path, _ in site.requests] == ["/next"]


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (get(), b"ok"),
        (b"\r\n\r\n" + get(), b"ok"),
        (b"GET http://h/a HTTP/1.1\r\n" + HOST + b"\r\n", b"ok"),
        (get("/" + "a" * 900), b"ok"),
        (get("/", b"X-A: 1\r\n" * 19), b"ok"),
        (get("/", b"Expect: 100-continue\r\n"), b"ok"),
        (post(b"Content-Length: 2\r\n", b"ab"), b"ab"),
        (post(b"Content-Length: 1000\r\n", b"x" * 1000), b"x" * 1000),
        (post(CHUNKED, b"2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n"), b"abcde"),
        (post(CHUNKED, b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\nX-A: 1\r\n\r\n"), b"x" * 1000),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3, 10000])
def test_a_good_request_is_answered_however_it_arrives(
    site: Site, sent: bytes, body: bytes, pieces: int
) -> None:
    client = site.connect()
    for _ in range(2):  # On one connection.
        for start in range(0, len(sent), pieces):
            client.sendall(sent[start : start + pieces])
        assert answer(client) == (200, body)


def test_a_client_that_waits_gets_100_continue(site: Site) -> None:
    client = site.send(post(b"Content-Length: 2\r\nExpect: 100-continue\r\n"))
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"ab")
    assert answer(client) == (200, b"ab")


def test_a_client_that_sends_all_of_a_body_that_is_too_large_sees_why(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINGER", 60.0)  # However slow the client is.
    client = site.send(post(b"Content-Length: 30000000\r\n"))
    client.sendall(b"x" * 30000000)
    code, body = answer(client)
    assert (code, json.loads(body)["error"]["type"]) == (413, "RequestLimitExceeded")
    assert "30000000" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("sent", [b"G", b"GET / HTTP/1.1\r\nX", post(b"Content-Length: 50\r\n"), b"\r\n"])
def test_a_request_that_arrives_too_slowly_is_refused(make_site: Callable[..., Site], sent: bytes) -> None:
    site = make_site(request=0.5)
    client = site.send(sent)

    def drip() -> None:
        with contextlib.suppress(OSError):
            while True:
                client.sendall(b"\r\n" if sent == b"\r\n" else b"x")
                time.sleep(0.05)

    threading.Thread(target=drip, daemon=True).start()
    assert status(client) == 408
    wait_for(lambda: closed(client))


def test_a_silent_connection_is_closed(site: Site) -> None:
    silent = site.connect()
    used = site.send(get())
    assert status(used) == 200
    site.limit(idle=0.5)
    assert closed(silent)
    assert closed(used)


def test_silent_and_slow_connections_hold_up_nobody(make_site: Callable[..., Site]) -> None:
    site = make_site(threads=1, per_address=0)
    clients = [site.send(sent) for sent in (b"", b"GET", post(b"Content-Length: 9\r\n")) for _ in range(60)]
    assert status(site.send(get())) == 200
    for client in clients[-60:]:
        client.sendall(b"123456789")
        assert status(client) == 200


def test_health_is_answered_while_all_workers_are_busy(make_site: Callable[..., Site]) -> None:
    site = make_site(threads=2)
    busy = [site.send(get("/gate")) for _ in range(4)]
    wait_for(lambda: len(site.requests) == 2)
    assert status(site.send(get("/healthcheck"))) == 200
    assert [path for path, _ in site.requests] == ["/gate", "/gate", "/healthcheck"]
    site.gate.set()
    assert [status(client) for client in busy] == [200] * 4


def test_the_head_of_an_answer_is_sent_with_the_beginning_of_its_body(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    send = connection.Channel.send

    def noting(channel: connection.Channel, data: bytes, do_close: bool = True) -> int:
        sent.append(bytes(data))
        return int(send(channel, data, do_close=do_close))

    monkeypatch.setattr(connection.Channel, "send", noting)
    client = site.connect()
    for path in ("/", "/", "/big"):
        sent.clear()
        client.sendall(get(path))
        assert status(client) == 200
        assert (len(sent) == 1) == (path == "/")
        assert [data.count(b"HTTP/1.1 ") for data in sent] == [1, *[0] * (len(sent) - 1)]
    sent.clear()
    client.sendall(get("/empty"))
    assert client.recv(MEGABYTE).startswith(b"HTTP/1.1 204 ")
    assert [data.count(b"HTTP/1.1 ") for data in sent] == [1]


def test_requests_that_last_have_all_threads(make_site: Callable[..., Site]) -> None:
    count = 2 * BEGINNING + 1
    site = make_site(threads=count)
    busy = [site.send(get("/gate")) for _ in range(count)]
    wait_for(lambda: len(site.requests) == count)
    site.gate.set()
    assert [status(client) for client in busy] == [200] * count


def test_a_process_with_connections_leaves_new_ones_to_others_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listener = server.listen("127.0.0.1", 0)
    created = HttpServer(
        lambda e, s: s("200 OK", [("Content-Length", "2")]) and [] or [b"ok"], host="", port=0, threads=1
    )
    address = ("127.0.0.1", created.start(listener))
    try:
        with socket.create_connection(address, timeout=60) as first:
            first.sendall(get())
            assert status(first) == 200  # It had no connection.
            monkeypatch.setattr(server, "YIELDS_FOR", 3600.0)
            with socket.create_connection(address, timeout=60) as second:
                # As another process does, which has the same socket.
                assert select.select([listener], [], [], 60)[0]
                listener.accept()[0].close()
                assert second.recv(1) == b""
    finally:
        created.stop()


def test_a_connection_that_no_other_process_accepts_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "YIELDS_FOR", 0.1)
    created = HttpServer(
        lambda e, s: s("200 OK", [("Content-Length", "2")]) and [] or [b"ok"], host="", port=0, threads=1
    )
    address = ("127.0.0.1", created.start(server.listen("127.0.0.1", 0)))
    try:
        with contextlib.ExitStack() as opened:
            for _ in range(3):
                client = opened.enter_context(socket.create_connection(address, timeout=60))
                client.sendall(get())
                assert status(client) == 200
    finally:
        created.stop()


def test_a_projects_requests_hold_its_share_of_the_threads(make_site: Callable[..., Site]) -> None:
    fairness = Fairness(lambda path: path.split("/")[1], most_waiting=3)
    site = make_site(threads=4, fairness=fairness)
    busy = [site.send(get("/a/gate")) for _ in range(5)]
    wait_for(lambda: (len(site.requests), site.waiting()) == (2, 3))
    refused = site.send(get("/a/more"))
    code, body = answer(refused)
    assert (code, json.loads(body)["error"]["type"]) == (429, "TooManyRequests")
    assert closed(refused)
    # Two newcomers: on a slow machine one project would not count as a light user at its second request.
    busy += [site.send(get("/b/gate")), site.send(get("/c/gate"))]
    wait_for(lambda: len(site.requests) == 4)
    assert status(site.send(get("/healthcheck"))) == 200
    site.gate.set()
    assert [status(client) for client in busy] == [200] * 7
    assert status(site.send(get("/a/more"))) == 200


def test_one_address_has_so_many_connections(make_site: Callable[..., Site]) -> None:
    site = make_site(per_address=3)
    clients = [site.send(get()) for _ in range(3)]
    assert [status(client) for client in clients] == [200] * 3
    refused = site.connect()
    code, body = answer(refused)
    assert (code, json.loads(body)["error"]["type"]) == (503, "ServiceUnavailable")
    assert closed(refused)
    clients[0].close()
    wait_for(lambda: status(site.send(get())) == 200)


def test_the_longest_waiting_connection_makes_room_and_one_in_progress_never(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(threads=3, total=3, per_address=0)
    busy = [site.send(get("/gate")) for _ in range(2)]
    wait_for(lambda: len(site.requests) == 2)
    silent = site.connect()
    third = site.connect()
    assert closed(silent)
    third.sendall(get("/gate"))
    wait_for(lambda: len(site.requests) == 3)
    assert status(site.connect()) == 503
    site.gate.set()
    assert [status(client) for client in (*busy, third)] == [200] * 3


def test_a_client_that_reads_nothing_holds_no_worker(make_site: Callable[..., Site]) -> None:
    site = make_site(threads=1)
    lazy = [site.send(get("/big")) for _ in range(3)]
    assert status(site.send(get())) == 200
    assert len(answer(lazy[0])[1]) == 32 * MEGABYTE


def test_urgent_data_ends_the_connection(site: Site) -> None:
    client = site.connect()
    client.send(b"!", socket.MSG_OOB)
    assert closed(client)
    assert status(site.send(get())) == 200


def test_memory_does_not_grow_with_what_is_sent(make_site: Callable[..., Site]) -> None:
    def resident() -> int:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

    site = make_site(threads=1, requests=RequestLimits(), request=20.0)
    heads = [
        post(b"Content-Length: 1500000000\r\n"),
        post(CHUNKED, b"fffffff\r\n"),
        post(CHUNKED, b"1;a="),
        b"GET /",
        b"GET / HTTP/1.1\r\nX: ",
        post(CHUNKED, b"0\r\nX: "),
        post(b"Content-Length: 8388608\r\n"),  # Allowed, and in files.
    ]
    piece = b"x" * MEGABYTE
    before = resident()
    for head in heads * 3:
        client = site.send(head)
        with contextlib.suppress(OSError):
            for _ in range(40):
                client.sendall(piece)
        assert resident() - before < 24 * MEGABYTE


def test_a_stop_answers_what_is_in_progress(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOPS_WITHIN", 60.0)
    site = make_site(threads=1)
    clients = [site.send(get("/gate")) for _ in range(2)]
    idle = site.connect()
    wait_for(lambda: len(site.requests) == 1 and site.waiting() == 1)
    stopping = threading.Thread(target=site.server.stop)
    stopping.start()
    wait_for(lambda: not _accepts(site.port))
    site.gate.set()
    assert [status(client) for client in clients] == [200, 200]
    stopping.join(60)
    assert closed(idle)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_random_bytes_are_answered_or_the_connection_is_closed(site: Site) -> None:
    """Mutations of good requests: each ends in an answer below 500 (501 and 505 are exact) or at its end."""
    chance = random.Random(15)
    seeds = [get(), post(b"Content-Length: 5\r\n", b"hello"), post(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")]
    parts = [
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b":",
        b"\0",
        b"\xff",
        b"0",
        b"-1",
        b";",
        b",",
        b"HTTP/1.1",
        b"%",
        b"[",
    ]
    for number in range(300):
        sent = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(sent))
            sent[at : at + chance.choice([0, 1, 1, 5])] = chance.choice(parts)
        client = site.connect()
        client.sendall(bytes(sent))
        client.shutdown(socket.SHUT_WR)
        code = status(client)
        assert code < 500 or code in (501, 505), (number, bytes(sent))
        client.close()
    assert status(site.send(get())) == 200


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_client_is_an_address_or_a_network(address: str, client: str) -> None:
    assert client_of((address, 1)) == client


def test_ipv6_is_served() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this host has no IPv6")
    created = HttpServer(lambda e, s: s("200 OK", []) and [] or [b"ok"], host="::", port=0, threads=1)
    port = created.start()
    try:
        for host in ("::1", "127.0.0.1"):
            with socket.create_connection((host, port), timeout=60) as client:
                client.sendall(get())
                assert client.recv(12) == b"HTTP/1.1 200"
    finally:
        created.stop()
