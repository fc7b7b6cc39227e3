"""Callers of the API, as Keystone's middleware passes them on, and the conductors as the API sees them."""

import json
import typing

import falcon.testing
from oslo_config import cfg
from simulation.test_life import api_of
from simulation.world import SHARDS, World
from stoker.api.keystone import KeystoneAuthentication
from stoker.cli.wiring.policy import Enforcer, list_rules
from stoker.db import conductors
from stoker.db.conductors import ACTIVE, ConductorRecord
from stoker.features.diagnosis.presence import FleetSettings
from stoker.features.diagnosis.services import ConsoleServices
from stoker.ring.hashring import Member
from stoker.ring.observer import GroupStatus

Json = typing.Any


def exact(digits: str) -> int:
    """The number; a browser would round a larger one."""
    number = int(digits)
    assert abs(number) <= 2**53, f"{number} must be a string"
    return number


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
        return json.loads(answer.text, parse_int=exact)

    def status(self, method: str, path: str, body: Json = None) -> int:
        """The status of an answer."""
        return self.call(method, path, body).status_code


class Callers:
    """The three kinds of callers of a world."""

    def __init__(self, world: World, console: ConsoleServices | None = None) -> None:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        enforcer = Enforcer(conf)
        enforcer.register_defaults(list_rules())
        console = console or ConsoleServices()
        api = api_of(world, auth=KeystoneAuthentication(enforcer), console=console)
        self.owner = Caller(api, "tenant", "reader", "member")
        self.operator = Caller(api, "operators", "admin", "member", "reader")
        self.stranger = Caller(api, "elsewhere", "reader", "member")


def console_of(world: World) -> ConsoleServices:
    """Return the services of the routes; the group has the conductors of the world."""

    def group() -> GroupStatus:
        rings = [conductor.ring for conductor in world.conductors.values()]
        return GroupStatus(frozenset(Member(ring.host, ring.incarnation) for ring in rings))

    settings = FleetSettings(takeover=10.0, grace=5.0)
    return ConsoleServices(shard_count=SHARDS, fleet=settings, group=group)


def report_all(world: World, **more: Json) -> None:
    """Let each conductor report."""
    now = world.clock()
    for conductor in world.conductors.values():
        ring = conductor.ring
        row = ConductorRecord(
            ring.host,
            f"{ring.host}/{ring.incarnation}",
            ACTIVE,
            started_at=now,
            heartbeat_at=now,
            shards_owned=ring.shards_owned(),
            ring_version=ring.version(),
            **{"threads": 4, **more},
        )
        world.database.write(lambda conn, row=row: conductors.report(conn, row))
