"""Requests that cannot be served: bodies, names, queries, paths and methods."""

import socket
import typing
import urllib.parse

import pytest
from client.serving import Answer, Service
from harness.templates import flat

Json = typing.Any
BAD = "HTTPBadRequest"
INVALID = "StackValidationFailed"
ABSENT = "EntityNotFound"
NAME_RULE = 'must contain only alphanumeric or "_-." characters'


class Refusals(typing.Protocol):
    service: Service
    path: str

    def check(self, answer: Answer, status: int, kind: str, *fragments: str) -> None: ...

    def create(self, kind: str, *fragments: str, **fields: Json) -> None: ...


FIELDS = {
    "no name": ({"stack_name": None}, BAD, ["stack_name", "string"]),
    "an empty name": ({"stack_name": ""}, INVALID, ["Invalid stack name", NAME_RULE]),
    "a name with a space": ({"stack_name": "a b"}, INVALID, ["a b", NAME_RULE]),
    "a name that begins with a digit": ({"stack_name": "1a"}, INVALID, ["1a", "start with alpha"]),
    "a name with a line end": ({"stack_name": "abc\n"}, INVALID, [NAME_RULE]),
    "a name with a slash": ({"stack_name": "a/b"}, INVALID, ["a/b", NAME_RULE]),
    "a name that is not ASCII": ({"stack_name": "größe"}, INVALID, ["größe", NAME_RULE]),
    "a name that is too long": ({"stack_name": "a" * 256}, INVALID, ["255 characters"]),
    "a very long name": ({"stack_name": "a" * 100_000}, INVALID, ["aaa…", "255 characters"]),
    "a name that is a number": ({"stack_name": 5}, BAD, ["stack_name", "5", "string"]),
    "a timeout below 0": ({"timeout_mins": -1}, BAD, ["timeout_mins", "-1", "1"]),
    "a timeout that is a word": ({"timeout_mins": "soon"}, BAD, ["timeout_mins", "soon", "whole number"]),
    "a timeout that is a fraction": ({"timeout_mins": 1.5}, BAD, ["timeout_mins", "1.5", "integer"]),
    "a timeout that is true": ({"timeout_mins": True}, BAD, ["timeout_mins", "true"]),
    "a huge timeout": ({"timeout_mins": 10**30}, BAD, ["timeout_mins", "2147483647"]),
    "a timeout that fits no column": ({"timeout_mins": 2**31}, BAD, ["timeout_mins", "2147483648"]),
    "a digit that is none": ({"timeout_mins": "²"}, BAD, ["timeout_mins", "²"]),
    "a rollback of perhaps": ({"disable_rollback": "perhaps"}, BAD, ["disable_rollback", "perhaps", "true"]),
    "a rollback of 5": ({"disable_rollback": 5}, BAD, ["disable_rollback", "5"]),
    "a tag that is too long": ({"tags": "a" * 81}, BAD, ["tag", "aaa", "80"]),
    "101 tags": ({"tags": [f"t{number}" for number in range(101)]}, BAD, ["101", "tags", "100"]),
    "half a million tags": ({"tags": ",".join(map(str, range(500000)))}, BAD, ["500000", "tags", "100"]),
    "many tags that are numbers": ({"tags": [1] * 100000}, BAD, ["tags.", "string"]),
    "a million tags that are numbers": ({"tags": [1] * 1000000}, BAD, ["tags: has 1000000 entries"]),
    "an empty tag": ({"tags": "a,,b"}, BAD, ["tag", "empty"]),
    "a tag with a comma": ({"tags": ["a,b"]}, BAD, ["tag", "a,b", "comma"]),
    "a tag that is a number": ({"tags": [1]}, BAD, ["tags.0", "string"]),
    "tags that are a map": ({"tags": {"a": 1}}, BAD, ["tags", "array"]),
    "no template": ({"template": None}, BAD, ["No template specified"]),
    "an empty template": ({"template": ""}, BAD, ["No template specified"]),
    "a template that is a number": ({"template": 5}, BAD, ["template", "5", "object"]),
    "a template by URL": (
        {"template_url": "http://x/t.yaml", "template": None},
        BAD,
        ["template_url", "not supported"],
    ),
    "a container of files": ({"files_container": "c"}, BAD, ["files_container", "not supported"]),
    "an unknown key": ({"stackname": "x"}, BAD, ["stackname", "stack_name"]),
    "a NUL in a tag": ({"tags": ["a\0"]}, BAD, ["tags.0", "NUL"]),
    "a NUL in the template": ({"template": flat(1) | {"description": "\0"}}, BAD, ["description", "NUL"]),
    "half a surrogate pair": ({"tags": ["\ud800"]}, BAD, ["tags.0", "Unicode"]),
    "half a pair as a key": ({"files": {"\ud800": "x"}}, BAD, ["files", "Unicode"]),
}

BODIES = {
    "no JSON": (b"{", ["JSON body malformed", "line 1"]),
    "a list": (b"[]", ["must be a JSON object"]),
    "a word": (b'"word"', ["must be a JSON object"]),
    "null": (b"null", ["must be a JSON object"]),
    "nothing": (b"", ["must be a JSON object"]),
    "not UTF-8": (b'{"stack_name": "\xff"}', ["JSON body malformed", "utf-8"]),
    "UTF-16": ('{"stack_name": "a"}'.encode("utf-16"), ["JSON body malformed"]),
    "half a pair as bytes": (b'{"stack_name": "\xed\xa0\x80"}', ["JSON body malformed", "utf-8"]),
    "NaN": (b'{"stack_name": "a", "timeout_mins": NaN}', ["NaN"]),
    "infinity": (b'{"stack_name": "a", "timeout_mins": 1e999}', ["1e999"]),
    "an endless integer": (b'{"timeout_mins": ' + b"9" * 5000 + b"}", ["JSON body malformed", "4300"]),
    "deeper than the stack": (b"[" * 200_000, ["JSON body malformed"]),
    "deeper than is sensible": (
        b'{"files": ' + b'{"a": ' * 400 + b"1" + b"}" * 401,
        ["deeper than 128 levels"],
    ),
    "a raw line end in a text": (b'{"stack_name": "a\nb"}', ["JSON body malformed", "control character"]),
}

QUERIES = {
    "limit=-1": ["limit", "-1"],
    "limit=abc": ["limit", "abc", "whole number"],
    "limit=%C2%B2": ["limit", "²"],
    "limit=99999999999999999999": ["limit", "2147483647"],
    "limit=2147483648": ["limit", "2147483648"],
    "limit=1.5": ["limit", "1.5"],
    "marker=nothing": ["marker", "nothing"],
    "sort_dir=up": ["sort_dir", "up", "asc or desc"],
    "show_deleted=maybe": ["show_deleted", "maybe", "true, false"],
    "show_nested=maybe": ["show_nested", "maybe"],
    "show_hidden=maybe": ["show_hidden", "maybe"],
    "with_count=maybe": ["with_count", "maybe"],
    "global_tenant=maybe": ["global_tenant", "maybe"],
    "name=%00": ["NUL"],
    "%00=name": ["NUL"],
}

BELOW = {
    "/resources?nested_depth=deep": ["nested_depth", "deep"],
    "/resources?nested_depth=-1": ["nested_depth", "-1"],
    "/resources?with_detail=maybe": ["with_detail", "maybe"],
    "/resources?colour=red": ["colour", "name", "physical_resource_id"],
    "/events?limit=x": ["limit", "x"],
    "/events?nested_depth=x": ["nested_depth", "x"],
    "/events?sort_dir=sideways": ["sort_dir", "sideways"],
    "/events?marker=nothing": ["marker", "nothing"],
    "?resolve_outputs=maybe": ["resolve_outputs", "maybe"],
}

ABSENCES = [
    "/v1/quiet",
    "/v1/quiet/nothing",
    "/v1/quiet/stacks/missing",
    "/v1/quiet/stacks/%FF",
    "/v1/quiet/stacks/%00",
    "/v1/quiet/stacks/missing/resources",
    "/v1/quiet/stacks/missing/00000000-0000-0000-0000-000000000000",
    "/v1/quiet/resource_types/OS::No::Such",
    "/v1/quiet/resource_types/OS::No::Such/template",
    "/v1/quiet/template_versions/heat_template_version.1999-01-01/functions",
    "/v2/quiet/stacks",
    "/v1//stacks",
]

SIGNALS = {
    "a list": (b"[1]", 400, BAD, ["JSON object"]),
    "no JSON": (b"{", 400, BAD, ["JSON body malformed"]),
    "a resource that takes none": (
        b"{}",
        400,
        "ResourceActionNotSupported",
        ["signal is not supported for resource. ", "r0", "OS::Heat::TestResource"],
    ),
}

MARKS = {
    "nothing said": ({}, ["mark_unhealthy"]),
    "perhaps": ({"mark_unhealthy": "perhaps"}, ["perhaps", "true, false"]),
    "a number": ({"mark_unhealthy": 1}, ["mark_unhealthy", "1"]),
    "an unknown key": ({"mark_unhealthy": True, "reason": "x"}, ["reason", "resource_status_reason"]),
    "a list": ([], ["JSON object"]),
}


@pytest.mark.parametrize(("fields", "kind", "fragments"), FIELDS.values(), ids=FIELDS)
def test_a_creation_with_a_wrong_field_is_refused(
    refusals: Refusals, fields: Json, kind: str, fragments: list[str]
) -> None:
    refusals.create(kind, *fragments, **fields)


@pytest.mark.parametrize(("raw", "fragments"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_json_object_is_refused(
    refusals: Refusals, raw: bytes, fragments: list[str]
) -> None:
    for path in ("stacks", "stacks/preview", "validate"):
        answer = refusals.service.call("POST", f"/v1/quiet/{path}", raw=raw)
        refusals.check(answer, 400, BAD, *fragments)


@pytest.mark.parametrize(("query", "fragments"), QUERIES.items(), ids=QUERIES)
def test_a_wrong_query_is_refused(refusals: Refusals, query: str, fragments: list[str]) -> None:
    refusals.check(refusals.service.call("GET", f"/v1/quiet/stacks?{query}"), 400, BAD, *fragments)


@pytest.mark.parametrize(("below", "fragments"), BELOW.items(), ids=BELOW)
def test_a_wrong_query_below_a_stack_is_refused(refusals: Refusals, below: str, fragments: list[str]) -> None:
    refusals.check(refusals.service.call("GET", refusals.path + below), 400, BAD, *fragments)


@pytest.mark.parametrize("path", ABSENCES)
def test_missing_objects_are_not_found(refusals: Refusals, path: str) -> None:
    refusals.check(refusals.service.call("GET", path), 404, ABSENT, "could not be found")


@pytest.mark.parametrize(("raw", "status", "kind", "fragments"), SIGNALS.values(), ids=SIGNALS)
def test_a_wrong_signal_is_refused(
    refusals: Refusals, raw: bytes, status: int, kind: str, fragments: list[str]
) -> None:
    answer = refusals.service.call("POST", f"{refusals.path}/resources/r0/signal", raw=raw)
    refusals.check(answer, status, kind, *fragments)


@pytest.mark.parametrize(("body", "fragments"), MARKS.values(), ids=MARKS)
def test_a_wrong_mark_is_refused(refusals: Refusals, body: Json, fragments: list[str]) -> None:
    answer = refusals.service.call("PATCH", f"{refusals.path}/resources/r0", body)
    refusals.check(answer, 400, BAD, *fragments)


def test_the_name_of_a_living_stack_is_refused(refusals: Refusals) -> None:
    body = {"stack_name": "existing", "template": flat(2)}
    for path in ("stacks", "stacks/preview"):
        answer = refusals.service.call("POST", f"/v1/quiet/{path}", body)
        refusals.check(answer, 409, "StackExists", "existing", "already exists")


def test_a_stack_of_another_project_is_not_found(refusals: Refusals) -> None:
    path = refusals.path.replace("/quiet/", "/thief/")
    for method in ("GET", "DELETE"):
        refusals.check(refusals.service.call(method, path), 404, ABSENT, "existing")


def test_another_project_than_that_of_the_path_is_refused(refusals: Refusals) -> None:
    body = {"stack_name": "refused", "template": flat(1)}
    answer = refusals.service.call("POST", "/v1/quiet/stacks", body, headers={"X-Project-Id": "thief"})
    refusals.check(answer, 403, "Forbidden", "quiet", "thief")


def test_a_project_or_a_user_that_fits_no_column_is_refused(refusals: Refusals) -> None:
    body = {"stack_name": "refused", "template": flat(1)}
    long = refusals.service.call("POST", f"/v1/{'t' * 65}/stacks", body)
    refusals.check(long, 400, BAD, "64 characters")
    named = refusals.service.call("POST", "/v1/quiet/stacks", body, headers={"X-Auth-User": "u" * 256})
    refusals.check(named, 400, BAD, "255 characters")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD", "TRACE"])
def test_a_wrong_method_is_refused_with_those_that_are_allowed(refusals: Refusals, method: str) -> None:
    answer = refusals.service.call(method, "/v1/quiet/stacks")
    assert (answer.status, answer.headers["Allow"].replace(" ", "")) == (405, "GET,POST") or method == "TRACE"
    if method != "HEAD":
        refusals.check(answer, 405, "HTTPMethodNotAllowed")


def test_the_allowed_methods_can_be_requested(refusals: Refusals) -> None:
    answer = refusals.service.call("OPTIONS", "/v1/quiet/stacks")
    assert (answer.status, answer.body, answer.headers["Allow"]) == (204, None, "GET, POST")


def test_a_body_that_is_not_json_is_refused(refusals: Refusals) -> None:
    answer = refusals.service.call(
        "POST", "/v1/quiet/stacks", raw=b"<stack/>", headers={"Content-Type": "text/xml"}
    )
    refusals.check(answer, 415, "HTTPUnsupportedMediaType", "text/xml", "application/json")


@pytest.mark.parametrize("kind", ["text/plain", "text/plain; charset=UTF-8", ""])
def test_json_as_plain_text_is_accepted_with_a_token_which_no_foreign_page_has(
    refusals: Refusals, kind: str
) -> None:
    raw = b'{"template": {"heat_template_version": "2021-04-16"}}'
    headers = {"Content-Type": kind}
    answer = refusals.service.call("POST", "/v1/quiet/validate", raw=raw, headers=headers)
    refusals.check(answer, 415, "HTTPUnsupportedMediaType", "application/json")
    headers["X-Auth-Token"] = "any"
    assert refusals.service.call("POST", "/v1/quiet/validate", raw=raw, headers=headers).status == 200
    answer = refusals.service.call("POST", "/v1/quiet/validate", raw=b"template", headers=headers)
    refusals.check(answer, 415, "HTTPUnsupportedMediaType", "application/json")


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("stacks", {"template": flat(1)}, "No stack name specified"),
        (
            "stacks",
            {"stack_name": "s", "template": flat(1), "timeout_mins": "x"},
            "Only integer is acceptable by",
        ),
        (
            "stacks",
            {"stack_name": "s", "template": flat(1), "timeout_mins": -1},
            "Value '-1' is invalid for ",
        ),
        ("stacks?limit=x", None, "Only integer is acceptable by 'limit'."),
    ],
)
def test_errors_of_requests_have_heats_texts(refusals: Refusals, path: str, body: Json, text: str) -> None:
    answer = refusals.service.call("GET" if body is None else "POST", f"/v1/quiet/{path}", body)
    refusals.check(answer, 400, BAD)
    assert answer.error["message"].startswith(text)


@pytest.mark.parametrize("size", [8 * 2**20 + 1, 20 * 2**20])
def test_a_body_that_is_too_large_is_refused_though_the_client_sends_it_all(
    refusals: Refusals, size: int
) -> None:
    answer = refusals.service.call("POST", "/v1/quiet/stacks", raw=b" " * size)
    refusals.check(answer, 413, "RequestLimitExceeded", str(size), str(8 * 2**20))


def test_a_body_in_chunks_is_read_and_judged(refusals: Refusals) -> None:
    pieces = [b'{"stack_name": "1", ', b'"template": {}}']
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    reply = exchange(refusals.service, b"Transfer-Encoding: chunked", chunks + b"0\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"Invalid stack name 1" in reply


def test_a_length_beyond_all_limits_is_refused_at_once(refusals: Refusals) -> None:
    reply = exchange(refusals.service, b"Content-Length: 99999999999", b"{}")
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert b"99999999999 bytes" in reply


def exchange(service: Service, header: bytes, body: bytes) -> bytes:
    """A request that no HTTP library would send."""
    address = urllib.parse.urlsplit(service.url)
    lines = [b"POST /v1/quiet/stacks HTTP/1.1", b"Host: localhost", b"Content-Type: application/json", header]
    with socket.create_connection((address.hostname, address.port), timeout=120) as conn:
        conn.sendall(b"\r\n".join([*lines, b"Connection: close", b"", body]))
        return b"".join(iter(lambda: conn.recv(65536), b""))
