"""Routes for consoles, for the owner of a project, an operator, and the owner of another project."""

import pathlib
import typing

import falcon.testing
import pytest
from oslo_config import cfg
from oslo_policy import policy
from simulation.test_life import api_of
from simulation.world import World
from stoker.api.keystone import KeystoneAuthentication
from stoker.api.policy import list_rules
from stoker.db.states import Status

Json = typing.Any
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "one": {"type": "Sim::Server", "properties": {"after": 0}},
        "two": {"type": "Sim::Server", "properties": {"after": 0}, "depends_on": "one"},
    },
}


class Caller:
    """A user with a token of Keystone's, as the middleware passes it on."""

    def __init__(self, api: falcon.testing.TestClient, project: str, *roles: str) -> None:
        self._api = api
        self._headers = {
            "X-Identity-Status": "Confirmed",
            "X-Project-Id": project,
            "X-User-Name": "ann",
            "X-Roles": ",".join(roles),
        }

    def call(
        self, method: str, path: str, body: Json = None, query: str = "", **headers: str
    ) -> falcon.testing.Result:
        """One request."""
        sent = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self._api.simulate_request(method, path, json=body, query_string=query, headers=sent)

    def get(self, path: str, query: str = "") -> Json:
        """The body of a GET that must succeed."""
        answer = self.call("GET", path, query=query)
        assert answer.status_code == 200, (path, answer.json)
        return answer.json

    def status(self, method: str, path: str, body: Json = None) -> int:
        """The status of an answer."""
        return self.call(method, path, body).status_code


class Callers:
    """The three kinds of callers of a world."""

    def __init__(self, world: World) -> None:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        enforcer = policy.Enforcer(conf)
        enforcer.register_defaults(list_rules())
        api = api_of(world, auth=KeystoneAuthentication(enforcer))
        self.owner = Caller(api, "tenant", "reader", "member")
        self.operator = Caller(api, "operators", "admin", "member", "reader")
        self.stranger = Caller(api, "elsewhere", "reader", "member")


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


@pytest.fixture
def callers(world: World) -> Callers:
    return Callers(world)


@pytest.fixture
def path(world: World) -> str:
    """The path of a stack that is complete."""
    stack = world.create("s", TEMPLATE)
    assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
    return f"/v1/tenant/stacks/s/{stack.id}"


def refused(callers: Callers, method: str, path: str) -> None:
    """A stranger's project is for nobody else, and what is in it does not exist below the stranger's own."""
    assert callers.stranger.status(method, path) == 403
    assert callers.stranger.status(method, path.replace("/tenant/", "/elsewhere/")) == 404


def test_an_event_names_the_conductor_to_operators_only(callers: Callers, path: str) -> None:
    theirs = callers.owner.get(f"{path}/events")["events"]
    known = callers.operator.get(f"{path}/events")["events"]
    assert [item.pop("conductor") for item in known] == [None, *["host0"] * 5]
    assert theirs == known
    first, *others = theirs
    assert (first["attempt"], first["ready_time"], first["claimed_time"]) == (None, None, None)
    for item in others[:-1]:
        assert item["attempt"] == 1
        assert item["ready_time"] <= item["claimed_time"] <= item["time"]
        assert item["time"].startswith(item["event_time"].removesuffix("Z"))
    one = next(item for item in others if item["resource_name"] == "one")
    link = one["links"][0]["href"].split("/v1/", 1)[1]
    assert "conductor" not in callers.owner.get(f"/v1/{link}")["event"]
    assert callers.operator.get(f"/v1/{link}")["event"]["conductor"] == "host0"
    refused(callers, "GET", f"{path}/events")
