"""Attacks below the requests: bytes that are no HTTP, headers, slow clients, and foreign pages."""

import socket
import time
import typing
import urllib.parse

from attack.cases import case
from attack.target import CLOSED, Party, Skip, Target, Unexpected, expect, host_of, status_of

Json = typing.Any
LIMIT = 10.0
"""Seconds in which others must be answered."""


@case(
    "network", "lengths that contradict each other, bare line ends, folded lines, control characters", "4xx"
)
def smuggled_requests(target: Target) -> None:
    target.needs_plain()
    host = host_of(target)
    inner = b"GET /v1/openapi.json HTTP/1.1\r\n" + host + b"\r\n"
    for head in (
        b"POST / HTTP/1.1\r\n"
        + host
        + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + inner,
        b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Content-Length: +4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b" X: folded\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + host + b"\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n\r\n",
        b"GET /\x01 HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/9.9\r\n" + host + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ):
        reply = target.raw([head, b"\r\n\r\n"])
        if status_of(reply) not in CLOSED or b"openapi" in reply:
            raise Unexpected(f"{head[:80]!r}: {reply[:200]!r}")


@case("network", "a request line and header fields above the limits", "4xx")
def long_heads(target: Target) -> None:
    target.needs_plain()
    host = host_of(target)
    for head in (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"".join(b"X%d: y\r\n" % number for number in range(2000)) + b"\r\n",
    ):
        if (status := status_of(target.raw(head))) not in CLOSED:
            raise Unexpected(f"{head[:40]!r}: {status}")


@case("network", "line ends in paths and queries that a redirect repeats", "no header of the attacker")
def response_splitting(target: Target) -> None:
    injected = "x%0d%0aSet-Cookie:%20a=b%0d%0a"
    name = target.stacks["mine"].split("/")[4]
    for path in (
        f"stacks/{name}?a={injected}",
        f"stacks/{injected}",
        f"stacks/arn:openstack:heat::p:stacks/{injected}/b",
    ):
        answer = target.send("GET", target.path(target.attacker, path))
        if "Set-Cookie" in answer.headers or answer.status_code >= 500:
            raise Unexpected(f"{path}: {answer.status_code} {answer.headers}")


@case("network", "a redirect's address with a foreign host in the request", "an own path")
def open_redirect(target: Target) -> None:
    name = target.stacks["mine"].split("/")[4]
    for path in (
        f"//evil.example/v1/{target.attacker.project}/stacks/{name}",
        "/%2f%2fevil.example/..",
        "/\\evil.example",
    ):
        answer = target.send("GET", target.root + path)
        location = urllib.parse.urlsplit(answer.headers.get("Location", ""))
        if location.hostname not in (None, urllib.parse.urlsplit(target.root).hostname):
            raise Unexpected(f"{path}: {answer.headers['Location']}")


@case("network", "80 clients that send half a request, or nothing", "others are answered")
def slow_clients(target: Target) -> None:
    target.needs_plain()
    url = urllib.parse.urlsplit(target.root)
    halves = (b"", b"GET / HT", b"POST / HTTP/1.1\r\n" + host_of(target) + b"Content-Length: 100\r\n\r\n{")
    clients = []
    try:
        for number in range(80):
            client = socket.create_connection((url.hostname or "", url.port or 80), timeout=LIMIT)
            clients.append(client)
            client.sendall(halves[number % len(halves)])
        began = time.monotonic()
        expect(target.send("GET", "/healthcheck"), 200)
        expect(target.send("GET", target.stacks["mine"]), 200)
        if time.monotonic() - began > LIMIT:
            raise Unexpected(f"others were answered after {time.monotonic() - began:.0f} s")
    finally:
        for client in clients:
            client.close()


@case("network", "a body of 1.5 GB in one part and in chunks", "413 or the end of the connection")
def endless_bodies(target: Target) -> None:
    target.needs_plain()
    path = target.path(target.attacker, "stacks").encode()
    host = host_of(target)
    for length in (b"Content-Length: 1500000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n59682f00\r\n"):
        reply = target.raw([b"POST " + path + b" HTTP/1.1\r\n" + host + length, *[b"x" * (1 << 20)] * 80])
        if status_of(reply) not in CLOSED:
            raise Unexpected(f"{length[:30]!r}: {reply[:100]!r}")
    expect(target.send("GET", "/healthcheck"), 200)


@case("page", "a request that a browser sends for another site's page", "403; with Keystone: 401")
def foreign_pages(target: Target) -> None:
    stacks = target.path(target.attacker, "stacks")
    expected = (401,) if target.has_keystone else (403,)
    anonymous = Party(target.attacker.project)
    for headers in (
        {"Origin": "https://evil.example.org"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        answer = target.send("GET", stacks, party=anonymous, headers=headers)
        expect(answer, *expected)
        if "Access-Control-Allow-Origin" in answer.headers:
            raise Unexpected("it allows the page to read answers")
    form = {"Content-Type": "text/plain", "Origin": "https://evil.example.org"}
    expect(target.send("POST", stacks, party=anonymous, data=b"{}", headers=form), 401, 403, 415)


@case("page", "the name of another host that leads here (DNS rebinding)", "403; with Keystone: 401")
def rebound_names(target: Target) -> None:
    if target.has_keystone:
        raise Skip("a token protects it")
    anonymous = Party(target.attacker.project)
    for host in ("evil.example.org", "127.0.0.1.evil.example.org", "localhost.evil.example.org"):
        expect(target.send("GET", target.stacks["mine"], party=anonymous, headers={"Host": host}), 403)


@case("page", "a change by a GET of the CloudFormation API", "403 or 405")
def change_by_get(target: Target) -> None:
    query = {
        "Action": "DeleteStack",
        "StackName": "x",
        "AWSAccessKeyId": target.attacker.project,
        "Signature": "x",
    }
    query |= {"SignatureVersion": "2"}
    expect(target.send("GET", "/v1/", party=Party(""), params=query), 400, 401, 403, 405)


@case("network", "methods that are not served, and a trace", "405, 501 or nothing of the request")
def methods(target: Target) -> None:
    for method in ("TRACE", "CONNECT", "PROPFIND", "DEBUG"):
        answer = target.send(method, target.stacks["mine"], headers={"X-Secret": "marker-7d1"})
        if answer.status_code < 400 or "marker-7d1" in answer.text:
            raise Unexpected(f"{method}: {answer.status_code}")


@case(
    "network",
    "a wrong path and a wrong template, of which errors say something",
    "no traceback, no path of the host",
)
def errors_say_nothing_inside(target: Target) -> None:
    for path in (
        "/nothing",
        f"{target.stacks['mine']}/resources/none",
        f"{target.stacks['mine']}?resolve_outputs=x",
    ):
        text = target.send("GET", path).text
        if "Traceback" in text or 'File "' in text or "site-packages" in text:
            raise Unexpected(text[:200])
