"""Guests that sign with the keys of their server: whose a request is, and what it may name."""

import types
import typing

import pytest
from keystoneclient.contrib.ec2.utils import Ec2Signer
from stoker.api.ec2_signatures import SignedRequest
from stoker.api.errors import Fault
from stoker.api.signed import (
    FORM,
    STACK_USER,
    account_of,
    check_arn,
    check_named,
    guest_of,
    parameters,
    signed_request,
    stack_arn,
)
from stoker.api.strangers import Strangers
from stoker.resources.guests import POLL_SERVER_CFN

Json = typing.Any
NOW = 1_893_553_445.0  # 2030-01-02T03:04:05Z
SECRET = "secret"
MOST_UNKNOWN = 64 * 1024
"""Bytes that a guest may send, as operation.md says it."""


def server(stack_id: str = "1", name: str = "r") -> Json:
    """Return a resource whose guest may sign."""
    facts = {"stack_id": stack_id, "stack_name": "s", "project_id": "p", "name": name}
    return types.SimpleNamespace(**facts)


class Keys:
    """The keys of one server, and those that were imported.

    :ivar closed: ids of stacks whose servers do not poll by signed requests.
    """

    def __init__(self, found: Json = None, imported: Json = (), closed: str = "") -> None:
        self._found = found
        self._imported = imported
        self._closed = closed

    def secret(self, access_key: str) -> str:
        return SECRET

    def find(self, stack_id: str, row: int) -> Json:
        return self._found if (stack_id, row) == ("1", 5) else None

    def admits(self, server: Json, transport: str) -> bool:
        assert transport == POLL_SERVER_CFN
        return server.stack_id not in self._closed

    def imported(self, key: object) -> Json:
        assert isinstance(key, str)
        return self._imported if key in ("key", "user") else ()


def signed(key: str, secret: str = SECRET, **params: str) -> SignedRequest:
    """Return a request as os-collect-config signs it."""
    params = {"AWSAccessKeyId": key, "SignatureVersion": "2", "SignatureMethod": "HmacSHA256", **params}
    signature = Ec2Signer(secret).generate({"params": params, "verb": "GET", "host": "h", "path": "/v1"})
    return SignedRequest("GET", "h", "/v1", [*params.items(), ("Signature", signature)])


def guest(request: SignedRequest | None, keys: Keys) -> Json:
    """Return the server that has signed a request."""
    with Strangers().attempt("203.0.113.5", "") as attempt:
        return guest_of(request, typing.cast("Json", keys), NOW, attempt)


def refusal(request: SignedRequest, keys: Keys) -> tuple[int, str]:
    """Return the status and the name of the error that a guest gets."""
    with pytest.raises(Fault) as refused:
        guest(request, keys)
    return refused.value.status, refused.value.kind


PAST = "2030-01-02T02:04:05Z"
WITHOUT = SignedRequest("GET", "h", "/v1", [])
NO_KEY = (403, "InvalidClientTokenId")


def test_a_right_signature_is_that_of_the_keys_row() -> None:
    own = server()
    assert guest(signed("1.5"), Keys(own)) is own


@pytest.mark.parametrize(
    ("request_", "closed", "error"),
    [
        (signed("1.5", "other"), "", (403, "SignatureDoesNotMatch")),
        (signed("1.5", Timestamp=PAST), "", (400, "RequestExpired")),
        (signed("1.5", SignatureVersion="1"), "", (400, "IncompleteSignature")),
        (WITHOUT, "", (403, "MissingAuthenticationToken")),
        (signed("1.6"), "", NO_KEY),
        (signed("1.5"), "1", NO_KEY),
        (
            SignedRequest("GET", "h", "/v1", signed("1.5").query, body=b"x" * (MOST_UNKNOWN + 1)),
            "",
            (413, "RequestLimitExceeded"),
        ),
    ],
)
def test_another_request_is_refused(request_: SignedRequest, closed: str, error: tuple[int, str]) -> None:
    assert refusal(request_, Keys(server(), closed=closed)) == error


def test_a_body_of_the_size_that_guests_may_send_is_read() -> None:
    request = SignedRequest("GET", "h", "/v1", signed("1.5").query, body=b"x" * MOST_UNKNOWN)
    assert guest(request, Keys(server())).stack_id == "1"


def test_an_imported_key_is_that_of_the_first_server_with_its_secret_that_polls_so() -> None:
    pairs = [(server("account"), None), (server("other"), "x"), (server("closed"), SECRET)]
    keys = Keys(imported=[*pairs, (server("own"), SECRET), (server("later"), SECRET)], closed="closed")
    assert guest(signed("key"), keys).stack_id == "own"
    assert guest(signed("key", Expires=PAST), keys).stack_id == "own", "an address is valid with its key"


@pytest.mark.parametrize(
    ("imported", "error"),
    [
        ([(server(), "x")], (403, "SignatureDoesNotMatch")),
        ([(server(), None)], NO_KEY),
        ([(server("closed"), SECRET)], NO_KEY),
        ([], NO_KEY),
    ],
)
def test_an_imported_key_with_no_such_server_is_refused(imported: Json, error: tuple[int, str]) -> None:
    assert refusal(signed("key"), Keys(imported=imported, closed="closed")) == error


def test_a_server_whose_key_is_refused_uses_up_the_clients_failures_only_once() -> None:
    strangers = Strangers(monotonic=lambda: 0.0)

    def left() -> float:
        bucket = strangers._buckets.get("203.0.113.5")  # noqa: SLF001
        return 100.0 if bucket is None else bucket[0]

    def attempted(request: SignedRequest) -> None:
        with strangers.attempt("203.0.113.5", "") as attempt:
            guest_of(request, typing.cast("Json", Keys(server(), [(server(), SECRET)])), NOW, attempt)

    for key in ("1.5", "key"):
        attempted(signed(key))
        assert left() == 100.0
    for count, key in enumerate(("1.5", "key"), start=1):
        with pytest.raises(Fault):
            attempted(signed(key, "wrong"))
        assert left() == 100.0 - count


@pytest.mark.parametrize(
    ("roles", "user_id", "stack_id", "name", "found"),
    [
        ([STACK_USER], "user", "2", "r", "2"),
        ([STACK_USER, "member"], "user", "2", "r", "2"),
        (["member"], "user", "2", "r", None),
        ([STACK_USER], 5, "2", "r", None),
        ([STACK_USER], "other", "2", "r", None),
        ([STACK_USER], "user", "2", "x", None),
        ([STACK_USER], "user", "3", "r", None),
    ],
)
def test_an_account_of_a_resource_is_a_guest_of_it_only(
    roles: list[str], user_id: object, stack_id: str, name: str, found: str | None
) -> None:
    keys: Json = Keys(imported=[(server("1"), None), (server("2"), None)])
    caller: Json = types.SimpleNamespace(roles=roles, credentials={"user_id": user_id})
    account = account_of(caller, keys, {"stack_id": stack_id, "resource_name": name})
    assert (account and account.stack_id) == found


ARN = "arn:openstack:heat::p:stacks/s/1"


@pytest.mark.parametrize("stack", ["s", "1", "s/1", ARN])
def test_a_guest_names_its_own_stack_as_clients_do(stack: str) -> None:
    assert stack_arn(server()) == ARN
    check_named(server(), stack, "r")
    with pytest.raises(Fault) as refused:
        check_named(server(), stack, "other")
    assert (refused.value.status, refused.value.kind) == (403, "AccessDenied")


@pytest.mark.parametrize(
    "stack", ["", "x", "p", "2", "s/2", ARN.replace("/1", "/2"), ARN.replace("p:", "q:")]
)
def test_a_guest_names_no_other_stack(stack: str) -> None:
    with pytest.raises(Fault) as refused:
        check_named(server(), stack, "r")
    assert (refused.value.status, refused.value.kind) == (403, "AccessDenied")


@pytest.mark.parametrize(
    ("arn", "status"),
    [
        (f"{ARN}/resources/r%2F1", None),
        (f"{ARN}/resources/r", 403),
        (f"{ARN}/resources/r%2F1/x", 400),
        (f"x{ARN}/resources/r%2F1", 400),
        (f"{ARN.replace('p:', 'q:')}/resources/r%2F1", 403),
        (f"{ARN.replace('/s/', '/t/')}/resources/r%2F1", 403),
        (f"{ARN.replace('/1', '/2')}/resources/r%2F1", 403),
        (ARN, 400),
    ],
)
def test_an_arn_names_the_guests_own_resource(arn: str, status: int | None) -> None:
    own = server(name="r/1")
    if status is None:
        check_arn(own, arn)
        return
    with pytest.raises(Fault) as refused:
        check_arn(own, arn)
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("method", "content_type", "form"),
    [
        ("POST", FORM, {"a": "1"}),
        ("POST", f"{FORM.title()} ; charset=utf-8", {"a": "1"}),
        ("PUT", FORM, {}),
        ("POST", "application/json", {}),
        ("POST", "", {}),
    ],
)
def test_only_a_posted_form_has_parameters(method: str, content_type: str, form: dict[str, str]) -> None:
    headers = {"CONTENT-TYPE": content_type, "HOST": "h:1"} if content_type else {}
    request = signed_request(method, "/v1", {"b": ["2", "3"]}, headers, b"a=1")
    assert dict(request.form) == form
    assert request.query == [("b", "2"), ("b", "3")]
    assert (request.method, request.host, request.path, request.body) == (
        method,
        headers.get("HOST", ""),
        "/v1",
        b"a=1",
    )
    assert request.headers.get("content-type", "") == content_type
    assert parameters(request) == {"b": "3", **form}
