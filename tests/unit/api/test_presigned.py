"""Addresses that carry a signature: it is checked before anything else."""

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES, bare_services
from stoker.api.app import make_app
from stoker.api.presigned import is_presigned
from stoker.cli.wiring.routes import ROUTES
from stoker.resources.contract.views import StackFacts

MADE = ADDRESSES.presigned(StackFacts(id="1", name="n", project_id="t"), "r", 5)
HINT = "the signature of this address is missing or wrong"


def client() -> falcon.testing.TestClient:
    """Return the client of an API that has nothing but its addresses."""
    return falcon.testing.TestClient(make_app(bare_services(), ROUTES, ADDRESSES))


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize(
    ("query", "token"),
    [("", ""), ("Signature=", ""), ("Signature=00", ""), ("Signature=%C3%28", "x"), ("", "\xfc")],
)
def test_a_wrong_signature_is_refused_before_body_and_database(method: str, query: str, token: str) -> None:
    answer = client().simulate_request(
        method, MADE.endpoint, query_string=query, headers={"X-Auth-Token": token}, body="{"
    )
    assert answer.status_code == 403
    assert HINT in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("stack", "name", "row"),
    [
        (StackFacts(id="1", name="n", project_id="other"), "r", 5),
        (StackFacts(id="2", name="n", project_id="t"), "r", 5),
        (StackFacts(id="1", name="n", project_id="t"), "other", 5),
        (StackFacts(id="1", name="n", project_id="t"), "r", 6),
    ],
)
def test_a_signature_opens_no_other_address(stack: StackFacts, name: str, row: int) -> None:
    path = ADDRESSES.presigned(stack, name, row).endpoint
    answer = client().simulate_post(path, headers={"X-Auth-Token": MADE.signature}, body="{")
    assert (answer.status_code, HINT in answer.json["error"]["message"]) == (403, True)


def test_the_right_one_in_the_query_or_the_header_lets_the_body_be_read_and_then_the_database() -> None:
    path = MADE.endpoint
    header = {"X-Auth-Token": MADE.signature}
    signed = f"Signature={MADE.signature}"
    assert client().simulate_post(path, headers=header, body="{").status_code == 400
    assert client().simulate_post(path, query_string=signed, body="{").status_code == 400
    for answer in (
        client().simulate_post(path, headers=header),
        client().simulate_put(path, query_string=signed, body="{}", content_type="application/x-www-form"),
    ):
        assert answer.status_code == 500, "the database was asked, and broke"


def test_a_signal_by_a_signature_clears_no_breakpoint() -> None:
    answer = client().simulate_post(
        MADE.endpoint, headers={"X-Auth-Token": MADE.signature}, json={"unset_hook": "pre-create"}
    )
    assert answer.status_code == 403
    assert "breakpoints are cleared by users of the stack" in answer.json["error"]["message"]


def test_only_post_and_put_are_there() -> None:
    for method in ("GET", "DELETE", "PATCH"):
        assert client().simulate_request(method, MADE.endpoint).status_code == 405


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (MADE.endpoint, True),
        (f"{MADE.endpoint}/", True),
        (MADE.endpoint.removesuffix("/5"), False),
        ("/v1/t/stacks", False),
        ("/v1/identity/v3", True),
        ("/v1/identity/v3/auth/tokens", True),
        ("/v1/identity/stacks", False),
        ("/v1/guest/t/5/stacks/s/1/resources/r/metadata", True),
        ("/v1/guest/stacks", False),
        (f"{MADE.endpoint}/more", False),
        (f"/x{MADE.endpoint}", False),
    ],
)
def test_which_paths_carry_a_signature(path: str, is_one: bool) -> None:
    assert is_presigned(path) is is_one
