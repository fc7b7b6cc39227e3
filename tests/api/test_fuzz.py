"""Random requests on every route, and random bytes: whatever a client sends, the server does not break.

The fixture `service` finds an error of the server's in the log, too.
"""

import contextlib
import json
import random
import socket
import typing
import urllib.parse
from collections.abc import Sequence

import pytest
from client.serving import Service
from harness.templates import flat
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
KNOWN = (501, 505)
"""Above 499 and meant: a method or version that is not supported."""
WORDS = [
    "",
    "0",
    "-1",
    "1e9",
    "2147483647",
    "99999999999999999999",
    "true",
    "name",
    "asc",
    "CREATE_FAILED",
    "\0",
    "\ud7ff",
    "😀" * 40,
    "é%00",
    "../..",
    "a,b,,c",
    ",".join(["name", "id"] * 1200),
    ",".join(str(number) for number in range(3000)),
    "x" * 5000,
    "(a+)+$",
    "[",
    "'\";--",
]
NAMES = [
    *("limit", "marker", "sort_keys", "sort_dir", "tags", "tags_any", "not_tags", "not_tags_any"),
    *("name", "id", "status", "action", "show_nested", "show_deleted", "with_count", "global_tenant"),
    *("nested_depth", "type", "with_detail", "with_attr", "resource_name", "version"),
    *("resolve_outputs", "support_status", "uuid", "template_type", "ignore_errors", "Signature"),
    *("owner_id", "with_description", "physical_resource_id", "é", "server_id"),
]
KEYS = [
    *("stack_name", "template", "environment", "files", "parameters", "tags", "timeout_mins"),
    *("existing", "environment_files", "step", "name", "clear_parameters", "disable_rollback"),
    *("adopt_stack_data", "continue", "check", "mark_unhealthy", "unset_hook", "converge"),
    *("resource_status_reason", "template_url"),
    *(
        "config_id",
        "server_id",
        "input_values",
        "output_values",
        "status_reason",
        "inputs",
        "outputs",
        "options",
    ),
]
SCALARS: list[Json] = [None, True, 0, -1, 1.5, 2**63, 1e300, "", "x", "a,b", "0", "\0", "😀", "[", "{a: b"]


def a_value(chance: random.Random, depth: int = 0) -> Json:
    kind = chance.random()
    if depth > 3 or kind < 0.5:
        return chance.choice(SCALARS)
    if kind < 0.6:
        return [chance.choice(SCALARS)] * chance.choice([101, 5000])
    if kind < 0.75:
        return [a_value(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    if kind < 0.85:
        return flat(1)
    keys = [*KEYS, "heat_template_version", "resources", "outputs", "type", "get_attr", "$fn", "args"]
    return {chance.choice(keys): a_value(chance, depth + 1) for _ in range(chance.randint(0, 5))}


def a_path(chance: random.Random, route: str, values: dict[str, str]) -> str:
    parts = []
    for part in route.split("/"):
        if part.startswith("{"):
            word = values.get(part, "x") if chance.random() < 0.8 else chance.choice(WORDS)[:300]
            part = urllib.parse.quote(word, safe="")
        parts.append(part)
    query = [(chance.choice(NAMES), chance.choice(WORDS)) for _ in range(chance.choice([0, 0, 1, 2, 4]))]
    text = "/".join(parts)
    return f"{text}?{urllib.parse.urlencode(query)}" if query else text


@pytest.mark.parametrize("seed", range(4))
def test_no_request_breaks_a_route(service: Service, tenant: str, seed: int) -> None:
    path = service.created(tenant, "known", flat(2), tags="a,b")
    values = {
        "{tenant_id}": tenant,
        "{stack_name}": "known",
        "{stack_id}": path.rsplit("/", 1)[1],
        "{resource_name}": service.get(f"{path}/resources")["resources"][0]["resource_name"],
    }
    chance = random.Random(seed)
    for number in range(250):
        route = chance.choice(list(ROUTES))
        method = chance.choice(["GET", "GET", "POST", "PUT", "PATCH", "HEAD", "OPTIONS", "DELETE"])
        if method == "DELETE" and route.endswith(("{stack_id}", "abandon")):
            continue
        url = a_path(chance, route, values)
        body = None if chance.random() < 0.3 else json.dumps(a_body(chance)).encode()
        answer = service.call(method, url, raw=body)
        assert answer.status < 500 or answer.status in KNOWN, (number, method, url, body, answer.body)
    assert service.get(path)["stack"]["stack_name"] == "known"


def a_body(chance: random.Random) -> Json:
    if chance.random() < 0.2:
        return a_value(chance)
    body = {chance.choice(KEYS): a_value(chance) for _ in range(chance.randint(0, 5))}
    if chance.random() < 0.5:
        body |= {"stack_name": f"n{chance.randrange(5)}", "template": flat(1)}
    return body


GOOD = [
    b"GET /v1/t/stacks?limit=1&tags=a HTTP/1.1\r\nHost: localhost\r\nX-Auth-User: u\r\n\r\n",
    b"POST /v1/t/stacks HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n"
    b'{"stack_name": "a" }',
    b"PUT /v1/t/stacks/a/b HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
]
SPLINTERS = [
    b"\r\n",
    b"\n",
    b" ",
    b":",
    b"\0",
    b"\xff",
    b"%",
    b"%00",
    b"-1",
    b";",
    b",",
    b"[",
    b"//",
    b"?",
    b"#",
]


def mutated(chance: random.Random, good: bytes, splinters: Sequence[bytes]) -> bytes:
    data = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([0, 1, 1, 6])] = chance.choice(splinters)
    return bytes(data)


def test_no_bytes_break_the_server(service: Service) -> None:
    chance = random.Random(15)
    host, port = service.url.removeprefix("http://").split(":")
    for number in range(400):
        sent = mutated(chance, chance.choice(GOOD), SPLINTERS)
        reply = b""
        with socket.create_connection((host, int(port)), timeout=60) as client:
            with contextlib.suppress(OSError):
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while piece := client.recv(65536):
                    reply += piece
        status = int(reply.split()[1]) if reply else 0
        assert status < 500 or status in KNOWN, (number, sent, reply)
