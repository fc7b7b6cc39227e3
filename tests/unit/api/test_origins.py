"""Requests that browsers send for foreign pages to an API without Keystone."""

import dataclasses
import typing

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES, bare_services
from stoker.api.app import make_app
from stoker.api.operations import Operation, Request
from stoker.api.origins import OriginGuard
from stoker.api.reply import Reply
from stoker.cli.wiring.routes import ROUTES
from stoker.console.pages import Console
from stoker.features.cloudformation.handlers import ACTIONS

GUARD = OriginGuard(["stoker-host"], ["https://stoker.example.org/orchestration"])
STACKS = "/v1/demo/stacks"


def _answered(request: Request) -> Reply:
    return Reply({"body": request.body})


class NoGuests:
    """Knows no key of a guest."""

    def imported(self, _: str) -> tuple[()]:
        return ()


def client() -> falcon.testing.TestClient:
    """Return a client of an API that answers its list of stacks."""
    operation = Operation(_answered, None)
    routes = {**ROUTES, "/v1/{tenant_id}/stacks": {"GET": operation, "POST": operation}}
    services = dataclasses.replace(bare_services(), guests=typing.cast(typing.Any, NoGuests()))
    return falcon.testing.TestClient(make_app(services, routes, ADDRESSES, pages=Console("1"), guard=GUARD))


def send(method: str, path: str, **headers: str) -> int:
    """Send a request with these headers; return the answer's status."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return client().simulate_request(method, path, headers=names).status_code


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8004",
        "[::1]:8004",
        "192.0.2.7",
        "localhost:1",
        "Stoker-Host",
        "stoker.example.org",
    ],
)
def test_addresses_and_the_names_of_the_api_are_answered(host: str) -> None:
    assert send("GET", STACKS, Host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org:8004", "localhost.evil.example.org", "127.0.0.1.evil.example.org", "[", ""]
)
def test_another_name_that_leads_here_is_refused(host: str) -> None:
    assert send("GET", STACKS, Host=host) == 403
    assert send("GET", "/console/", Host=host) == 403
    assert send("GET", "/healthcheck", Host=host) != 403


@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "https://evil.example.org"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
    ],
    ids=str,
)
def test_a_foreign_page_reaches_nothing(page: dict[str, str]) -> None:
    assert send("POST", STACKS, Host="127.0.0.1:8004", **page) == 403
    assert send("GET", STACKS, Host="127.0.0.1:8004", **page) == 403


@pytest.mark.parametrize(
    ("host", "page"),
    [
        ("127.0.0.1:8004", {"Origin": "http://127.0.0.1:8004", "Sec_Fetch_Site": "same-origin"}),
        ("localhost", {"Origin": "https://localhost"}),
        ("127.0.0.1:8004", {"Origin": "https://stoker.example.org"}),
        ("127.0.0.1:8004", {"Sec_Fetch_Site": "none", "Sec_Fetch_Mode": "navigate"}),
    ],
)
def test_the_own_pages_reach_all(host: str, page: dict[str, str]) -> None:
    assert send("POST", STACKS, Host=host, **page) == 200


def test_a_link_of_another_site_leads_to_the_console() -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert send("GET", "/console/", Host="127.0.0.1:8004", **link) == 200
    assert send("GET", "/console/settings", Host="127.0.0.1:8004", Sec_Fetch_Site="cross-site") == 403


def test_a_body_needs_its_type() -> None:
    host = {"Host": "localhost"}
    answer = client().simulate_post(STACKS, body='{"a": 1}', headers=host)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json["error"]["message"]
    assert client().simulate_post(STACKS, json={"a": 1}, headers=host).json == {"body": {"a": 1}}


def test_an_action_of_cloudformation_changes_nothing_by_get_where_nobody_verifies_its_signature() -> None:
    host = {"Host": "localhost"}
    signed = "AWSAccessKeyId=demo&Signature=x&SignatureVersion=2&SignatureMethod=HmacSHA256"
    queries = {action: f"Action={action}&StackName=s&{signed}" for action in ACTIONS}
    answers = {
        action: client().simulate_get("/v1/", query_string=query, headers=host).status_code
        for action, query in queries.items()
    }
    changing = {"CreateStack", "UpdateStack", "DeleteStack", "CancelUpdateStack"}
    assert {action for action, status in answers.items() if status == 405} == changing
