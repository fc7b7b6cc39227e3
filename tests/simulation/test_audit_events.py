"""The audit events of requests."""

import json
import pathlib
import typing

import falcon.testing
import pytest
from simulation.test_life import api_of
from simulation.world import World
from stoker.api.app import IDENTIFIER, QUIET
from stoker.api.audit import SERVICE, AuditLog, action_of, type_uri
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
TEMPLATE = {"heat_template_version": "2018-08-31", "resources": {"one": {"type": "Sim::Server"}}}
ADDRESS = "/v1/tenant/stacks/s/1/resources/one/signal/1"


class Audited:
    """An API, and the events of its requests."""

    def __init__(self, world: World, *, reads: bool) -> None:
        self.events: list[Json] = []
        self.api: falcon.testing.TestClient = api_of(world)
        audit = AuditLog(self.events.append, reads=reads, quiet=QUIET, identifier=IDENTIFIER)
        self.api.app.add_middleware(audit)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


def test_a_change_makes_an_event_of_who_did_what(world: World) -> None:
    audited = Audited(world, reads=False)
    body = {"stack_name": "s", "template": TEMPLATE}
    headers = {"X-Auth-User": "alice", "User-Agent": "client/1"}
    answer = audited.api.simulate_post("/v1/tenant/stacks", json=body, headers=headers)
    assert answer.status_code == 201
    audited.api.simulate_get("/v1/tenant/stacks")
    [event] = audited.events
    assert (
        event.items()
        >= {
            "action": "create",
            "eventType": "activity",
            "outcome": "success",
            "reason": {"reasonType": "HTTP", "reasonCode": "201"},
            "requestPath": "/v1/tenant/stacks",
        }.items()
    )
    assert (
        event["initiator"].items()
        >= {
            "name": "alice",
            "project_id": "tenant",
            "request_id": answer.headers["x-openstack-request-id"],
            "host": {"address": "127.0.0.1", "agent": "client/1"},
        }.items()
    )
    assert event["target"].items() >= {"id": "tenant", "typeURI": f"{SERVICE}/stacks"}.items()


def test_a_refused_change_makes_one_without_the_signature_of_its_address(world: World) -> None:
    audited = Audited(world, reads=False)
    query = "Signature=forged%3D&Timestamp=1"
    answer = audited.api.simulate_post(ADDRESS, query_string=query, json={})
    assert answer.status_code in (401, 403)
    [event] = audited.events
    assert (event["outcome"], event["reason"]["reasonCode"]) == ("failure", str(answer.status_code))
    assert event["initiator"]["name"] == event["initiator"]["project_id"] == "unknown"
    assert "forged" not in json.dumps(event)


def test_reads_make_events_where_they_are_requested_but_for_health_checks(world: World) -> None:
    audited = Audited(world, reads=True)
    for path in ("/v1/tenant/stacks", "/healthcheck", "/v1/tenant/stacks/none/1"):
        audited.api.simulate_get(path)
    assert [(event["action"], event["outcome"]) for event in audited.events] == [
        ("read/list", "success"),
        ("read", "failure"),
    ]


def test_each_route_has_an_action_and_a_type() -> None:
    actions = {action_of(method, path) for path, operations in ROUTES.items() for method in operations}
    assert actions == {"create", "read", "read/list", "update", "delete"}
    below = "/v1/{tenant_id}/stacks/{stack_name}/{stack_id}"
    assert action_of("POST", f"{below}/actions") == "update"
    assert type_uri(f"{below}/snapshots/{{snapshot_id}}/restore") == f"{SERVICE}/stacks/snapshots/restore"
