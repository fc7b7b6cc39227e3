"""Requests whose signer nobody knows yet: how much of them is read, and what of them is computed."""

import contextlib
import dataclasses
import re
import tracemalloc
import typing
import urllib.parse

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES, bare_services
from stoker.api import ec2_signatures, signed
from stoker.api.app import make_app
from stoker.api.authenticator import NoAuthentication
from stoker.api.ec2_signatures import (
    MOST_PARAMETERS,
    SignatureClaim,
    SignatureError,
    SignedRequest,
    key_in_sight,
    verify,
)
from stoker.api.errors import Fault
from stoker.api.settings import ApiLimits
from stoker.api.signed import FORM, signed_request
from stoker.cli.wiring.http import _project_of
from stoker.cli.wiring.routes import ROUTES

KEY = "0123456789abcdef0123456789abcdef"
MOST_UNKNOWN = 64 * 1024
"""Bytes that a stranger may send, as operation.md says it."""
LIMITS = ApiLimits(body_bytes=8 * MOST_UNKNOWN)
V2 = "SignatureVersion=2&SignatureMethod=HmacSHA256&Signature=x"


def client(**changes: typing.Any) -> falcon.testing.TestClient:
    """Return the client of an API that has nothing but its addresses."""
    return falcon.testing.TestClient(
        make_app(dataclasses.replace(bare_services(), limits=LIMITS, **changes), ROUTES, ADDRESSES)
    )


def kind_of(answer: falcon.testing.Result) -> str:
    """Return the name of an error, of either API."""
    text = answer.text
    return next(
        word for word in ("RequestLimitExceeded", "TooManyRequests", "Unauthorized", "") if word in text
    )


OF_GUESTS = [
    ("POST", "/v1/signal/arn:openstack:heat::p:stacks/s/1/resources/r"),
    ("PUT", "/v1/waitcondition/arn:openstack:heat::p:stacks/s/1/resources/r"),
    ("POST", "/v1/identity/v3/auth/tokens"),
]


@pytest.mark.parametrize(("method", "path"), OF_GUESTS)
def test_a_users_key_makes_what_guests_send_no_larger(method: str, path: str) -> None:
    query = f"AWSAccessKeyId={KEY}&{V2}"
    answer = client().simulate_request(method, path, query_string=query, body="x" * (MOST_UNKNOWN + 1))
    assert (answer.status_code, kind_of(answer)) == (413, "RequestLimitExceeded")


@pytest.mark.parametrize(("method", "path"), [*OF_GUESTS, ("POST", "/v1")])
def test_of_a_stranger_64_kib_are_read(method: str, path: str) -> None:
    answer = client().simulate_request(method, path, body="x" * (MOST_UNKNOWN + 1))
    assert (answer.status_code, kind_of(answer)) == (413, "RequestLimitExceeded")
    assert client().simulate_request(method, path, body="x" * MOST_UNKNOWN).status_code != 413


class Refusing(NoAuthentication):
    """A check of tokens that accepts nobody."""

    def identify(self, *arguments: typing.Any) -> typing.NoReturn:
        raise Fault(401, "Unauthorized", "no token")


def test_who_has_no_token_is_refused_before_the_body_is_read() -> None:
    api = client(auth=Refusing())
    statuses = {}
    for path, operations in ROUTES.items():
        for method in {"POST", "PUT", "PATCH"} & operations.keys():
            if not operations[method].signed and not operations[method].presigned:
                address = re.sub(r"{[^}]+}", "1", path)
                statuses[method, path] = api.simulate_request(method, address, body="{").status_code
    assert len(statuses) > 10
    assert set(statuses.values()) == {401}, statuses


def large_form(start: str, end: str = "") -> bytes:
    return f"{start}&Action=ValidateTemplate&TemplateBody={'x' * 2 * MOST_UNKNOWN}{end}".encode()


def test_a_users_template_may_be_larger_where_the_key_comes_first() -> None:
    seen = []

    def count(project: str) -> None:
        seen.append(project)
        raise Fault(429, "TooManyRequests", "enough")

    headers = {"Content-Type": FORM}
    api = client(count_key=count)
    answer = api.simulate_post("/v1", headers=headers, body=large_form(f"AWSAccessKeyId={KEY}&{V2}"))
    assert (answer.status_code, seen) == (429, [KEY])
    last = large_form(V2, f"&AWSAccessKeyId={KEY}")
    assert api.simulate_post("/v1", headers=headers, body=last).status_code == 413
    credential = {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20300101/r/s/aws4_request,"}
    assert api.simulate_post("/v1", headers=credential, body=large_form("a=b")).status_code == 429
    assert api.simulate_post(f"/v1?AWSAccessKeyId={KEY}", headers=headers, body=last).status_code == 429


def test_two_large_bodies_are_read_at_a_time() -> None:
    bodies = signed.SignedBodies()

    def body(size: int) -> contextlib.AbstractContextManager[bytes]:
        env = falcon.testing.create_environ("/v1", method="POST", body="x" * size)
        return bodies.body(falcon.Request(env), {"AWSAccessKeyId": [KEY]}, LIMITS.body_bytes)

    large = 2 * MOST_UNKNOWN
    with body(large) as one, body(large) as other:
        assert len(one) == len(other) == large
        with pytest.raises(Fault) as refused, body(large):
            pass
        assert refused.value.status == 429
        with body(1) as small:
            assert small == b"x"
    with body(large) as later:
        assert len(later) == large


def test_a_guests_key_lets_no_large_body_in() -> None:
    env = falcon.testing.create_environ("/v1", method="POST", body="x" * 2 * MOST_UNKNOWN)
    body = signed.SignedBodies().body(falcon.Request(env), {"AWSAccessKeyId": ["1.5"]}, LIMITS.body_bytes)
    with pytest.raises(Fault) as refused, body:
        pass
    assert refused.value.status == 413


def test_requests_of_a_key_have_a_rate() -> None:
    counted: list[str] = []
    api = client(count_key=counted.append)
    api.simulate_get("/v1", query_string=f"Action=DescribeStackResource&AWSAccessKeyId={KEY}&{V2}")
    assert counted == [KEY]


@pytest.mark.parametrize("version", [2, 4])
def test_one_canonical_text_is_made_for_all_forms_of_an_address(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted: list[str] = []
    real = ec2_signatures._quoted
    monkeypatch.setattr(ec2_signatures, "_quoted", lambda text: (quoted.append(text), real(text))[1])
    request = SignedRequest("POST", "host:8004", "/v1/ü", [("a", "1")], headers={"host": "host:8004"})
    claim = SignatureClaim(version, KEY, "x", scope="20300101/r/s/aws4_request", signed_headers=("host",))
    with pytest.raises(SignatureError):
        verify(claim, request, "secret", 0.0)
    assert quoted == ["a", "1"]


def test_the_key_is_found_where_clients_put_it() -> None:
    assert key_in_sight({}, "", b"Action=a&AWSAccessKeyId=abc&x=1") == "abc"
    assert key_in_sight({}, "", b"Action=a&AWSAccessKeyId=abc") is None, "it may be longer"
    assert key_in_sight({"X-Amz-Credential": ["abc/2030/r"]}, "", b"") == "abc"
    assert key_in_sight({"AWSAccessKeyId": ["abc"]}, "", b"") == "abc"
    assert key_in_sight({}, "AWS4-HMAC-SHA256 Credential=abc/2030/r", b"") == "abc"
    by_header = "AWS4-HMAC-SHA256 Credential=abc/2030/r"
    assert key_in_sight({}, by_header, b"AWSAccessKeyId=def&") == "abc"
    sought = "Credential=abc/"
    assert key_in_sight({}, "x" * (4096 - len(sought)) + sought, b"xAWSAccessKeyId=abc&") == "abc"
    assert key_in_sight({}, "x" * (4097 - len(sought)) + sought, b"xAWSAccessKeyId=abc&") is None


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("/v1/p/stacks", "p"),
        ("/v1/guest/p/5/stacks/s/1/resources/r/metadata", "p"),
        ("/v1/signal/arn:x", ""),
        ("/v1/waitcondition/arn:x", ""),
        ("/v1/identity/v3/auth/tokens", ""),
        ("/v1", ""),
    ],
)
def test_all_strangers_have_the_share_of_one_project(path: str, project: str) -> None:
    assert _project_of(path) == project


@pytest.mark.parametrize("path", ["/", "/v1/p/stacks/x", "/none", "/v1/signal/x", "/healthcheck"])
def test_no_browser_takes_an_answer_for_something_else(path: str) -> None:
    assert client().simulate_get(path).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("size", [0, 1, 7, 10, 11, 12, 13, 50])
def test_a_form_is_decoded_in_pieces_as_the_library_decodes_it(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed, "_PIECE", 12)
    body = f"{'x' * size}%C3%BC+%2B&b=&c&&d=ü%e2%82%ac%zz%4&{'%41' * size}=%".encode()
    expected = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)
    assert signed_request("POST", "/v1", {}, {"CONTENT-TYPE": FORM}, body).form == expected


def test_a_form_takes_a_small_multiple_of_its_size() -> None:
    body = b"a=" + b"%F0%9F%98%80" * 100_000
    tracemalloc.start()
    try:
        signed_request("POST", "/v1", {}, {"CONTENT-TYPE": FORM}, body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(body) + 2**23


def test_a_form_has_few_parameters() -> None:
    with pytest.raises(Fault, match="too many parameters"):
        signed_request("POST", "/v1", {}, {"CONTENT-TYPE": FORM}, b"a=1&" * MOST_PARAMETERS)
