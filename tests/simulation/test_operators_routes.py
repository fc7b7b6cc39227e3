"""Routes for operators: the ring, its conductors, and the stacks of all projects."""

import dataclasses
import pathlib
import typing

import pytest
from simulation.console import Callers, console_of, report_all
from simulation.world import SHARDS, World
from stoker.api.shared_views import SharedViews
from stoker.db import conductors
from stoker.db.states import Status
from stoker.features.diagnosis.services import ConsoleServices
from stoker.observe.instants import exact_or_none
from stoker.ring.hashring import assign
from stoker.ring.observer import GroupStatus

Json = typing.Any
RING = "/v1/admin/ring"
PLAN = "/v1/admin/ring/plan"
QUOTAS = "/v1/admin/quotas/tenant"
PROJECT_QUOTAS = "/v1/admin/project_quotas"
ONE = {"heat_template_version": "2018-08-31", "resources": {"one": {"type": "Sim::Server"}}}
SIX = {
    "heat_template_version": "2018-08-31",
    "resources": {f"r{number}": {"type": "Sim::Server", "properties": {"after": 0}} for number in range(6)},
}
SLOW = {
    "heat_template_version": "2018-08-31",
    "resources": {"one": {"type": "Sim::Server", "properties": {"after": 1000}}},
}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    simulated = World(tmp_path, hosts=2)
    report_all(simulated)
    return simulated


@pytest.fixture
def console(world: World) -> ConsoleServices:
    return console_of(world)


@pytest.fixture
def callers(world: World, console: ConsoleServices) -> Callers:
    return Callers(world, console)


OPERATIONS = [
    ("GET", RING),
    ("POST", PLAN),
    ("POST", f"{RING}/host0/drain"),
    ("POST", f"{RING}/host0/undrain"),
    ("GET", "/v1/admin/conductors/host0"),
    ("GET", "/v1/admin/stack_counts"),
    ("GET", "/v1/admin/stuck_stacks"),
    ("GET", PROJECT_QUOTAS),
    ("GET", QUOTAS),
    ("PUT", QUOTAS),
    ("DELETE", QUOTAS),
]
BODIES: dict[str, Json] = {PLAN: {"leave": ["host0"]}, QUOTAS: {"quotas": {"stacks": 5}}}


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_they_are_for_operators_only(callers: Callers, method: str, path: str) -> None:
    body = BODIES.get(path) if method != "GET" else None
    for other in (callers.owner, callers.stranger):
        assert other.status(method, path, body) == 403
    assert callers.operator.status(method, path, body) in (200, 202, 204)


def test_the_ring_shows_shares_and_whether_it_is_settled(callers: Callers, world: World) -> None:
    world.create("s", SLOW)
    world.calm()
    ring = callers.operator.get(RING, "shards=true")["ring"]
    assert (ring["settled"], ring["shard_count"], ring["stacks_in_progress"]) == (True, SHARDS, 1)
    assert ring["health"] == f"healthy: every one of {SHARDS} shards has one owner"
    places = {place["host"]: place for place in ring["conductors"]}
    assert sum(place["shards"] for place in places.values()) == SHARDS
    assert sum(place["stacks_in_progress"] for place in places.values()) == 1
    assert [ring["owners"][number] for number in ring["shards"]] == list(
        assign(world.conductors["host0"].ring.view).hosts
    )
    assert {place["alive"] for place in places.values()} == {True}
    assert "shards" not in callers.operator.get(RING)["ring"]


def test_rates_are_averages_of_what_each_conductor_has_done_lately(callers: Callers, world: World) -> None:
    def rates() -> list[dict[str, float]]:
        names = ("tasks_per_second", "events_per_second")
        places = callers.operator.get(RING)["ring"]["conductors"]
        one_by_one = [callers.operator.get(f"/v1/admin/conductors/{p['host']}")["conductor"] for p in places]
        assert [[p[n] for n in names] for p in places] == [[c[n] for n in names] for c in one_by_one]
        return [{name: place[name] for name in names} for place in places]

    def total(name: str) -> float:
        return sum(rate[name] for rate in rates())

    assert (total("tasks_per_second"), total("events_per_second")) == (0, 0)
    world.create("s", SIX)
    world.calm()
    # Each begins and ends; the stack's own end is no task's, and its beginning is the API's event.
    assert total("tasks_per_second") == pytest.approx(0.6)
    assert total("events_per_second") == pytest.approx(1.3)
    world.clock.now += 11
    assert (total("tasks_per_second"), total("events_per_second")) == (0, 0)


def test_a_ring_whose_group_is_unreachable_shows_the_last_reports(
    world: World, console: ConsoleServices
) -> None:
    callers = Callers(world, dataclasses.replace(console, group=lambda: "etcd is away"))
    ring = callers.operator.get(RING)["ring"]
    assert (ring["settled"], [place["alive"] for place in ring["conductors"]]) == (False, [None, None])
    assert "etcd is away" in ring["health"]
    assert callers.operator.status("POST", PLAN, {"leave": ["host0"]}) == 503


def test_a_plan_says_what_would_move_and_changes_nothing(callers: Callers, world: World) -> None:
    world.create("s", SLOW)
    world.calm()
    before = callers.operator.get(RING)["ring"]
    plan = callers.operator.call("POST", PLAN, {"leave": ["host0"]}).json["plan"]
    shards = next(place["shards"] for place in before["conductors"] if place["host"] == "host0")
    assert plan["moves"] == [{"from": "host0", "to": "host1", "shards": shards}]
    assert plan["after"] == {"host1": SHARDS}
    assert plan["warnings"] == ["only host1 would be left: no conductor takes over its work if it fails"]
    assert plan["summary"].startswith(f"{shards / SHARDS:.0%} of the ring moves, with ")
    assert plan["summary"].endswith("; then the shares are host1 100%")
    assert callers.operator.get(RING)["ring"] == before
    joined = callers.operator.call("POST", PLAN, {"join": {"host2": 1}}, query="shards=true").json["plan"]
    assert joined["warnings"] == []
    assert list(joined["shards"].values()).count("host2") == joined["after"]["host2"] > 0
    assert len(joined["shards"]) == joined["moved_shards"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"leave": ["nobody"]}, "nobody is not on the ring, which has: host0, host1"),
        ({"join": {"host0": 1}}, "host0 is already on the ring"),
        ({"weight": {"host9": 1}}, "host9 is not on the ring"),
        ({"weight": {"host0": 0}}, "the weight of host0 must be above 0"),
        ({"weight": {"host0": "much"}}, "is not of type number"),
        ({"leave": ["host0", "host1"]}, "the ring is empty, or would be"),
        ({"leaves": ["host0"]}, 'did you mean "leave"'),
        ({}, ""),
    ],
)
def test_a_wrong_plan_is_refused(callers: Callers, body: Json, text: str) -> None:
    answer = callers.operator.call("POST", PLAN, body)
    assert answer.status_code == 400
    assert text in answer.json["error"]["message"]


def test_a_conductor_is_drained_and_returns(callers: Callers, world: World) -> None:
    def wanted_states() -> list[str]:
        return [row.wanted for row in world.database.read(conductors.list_all)]

    request = {
        "wanted": "draining",
        "wanted_by": "ann",
        "wanted_time": exact_or_none(world.clock()),
        "wanted_reason": "a new kernel",
    }
    answer = callers.operator.call("POST", f"{RING}/host0/drain", {"reason": "a new kernel"})
    assert answer.json == {"host": "host0", **request}
    assert wanted_states() == ["draining", "active"]
    place, other = callers.operator.get(RING)["ring"]["conductors"]
    assert {name: place[name] for name in request} == request
    assert [other[name] for name in request] == ["active", None, None, None]
    assert callers.operator.call("POST", f"{RING}/host0/drain").json["wanted_reason"] is None
    for wrong in ("two\nlines", "x" * 256, 1):
        assert callers.operator.status("POST", f"{RING}/host0/drain", {"reason": wrong}) == 400
    assert callers.operator.status("POST", f"{RING}/host0/undrain") == 202
    assert wanted_states() == ["active", "active"]
    assert callers.operator.status("POST", f"{RING}/nobody/drain") == 404


def test_a_conductor_shows_what_it_has_in_hand(callers: Callers, world: World) -> None:
    stack = world.create("s", SLOW)
    world.calm()
    views = [callers.operator.get(f"/v1/admin/conductors/host{n}")["conductor"] for n in (0, 1)]
    [task] = [task for one in views for task in one["tasks"]]
    assert (task["stack"], task["resource"], task["action"], task["attempt"]) == (
        stack.id,
        "one",
        "create",
        1,
    )
    assert (task["polled"], task["hung"], task["orphan"]) == (True, False, False)
    assert views[0]["threads"] == 4
    assert callers.operator.status("GET", "/v1/admin/conductors/nobody") == 404


def test_stacks_are_counted_by_state(world: World, console: ConsoleServices) -> None:
    callers = Callers(world, dataclasses.replace(console, counts=SharedViews(keep=0.0)))
    done = world.create("done", ONE)
    assert world.settle(lambda: world.stack(done.id).status == Status.COMPLETE, within=60)
    world.create("slow", SLOW)
    expected = {
        "total": 2,
        "by_status": {"COMPLETE": 1, "IN_PROGRESS": 1},
        "by_state": {"CREATE_COMPLETE": 1, "CREATE_IN_PROGRESS": 1},
    }
    assert callers.owner.get("/v1/tenant/stack_counts")["stack_counts"] == expected
    assert callers.operator.get("/v1/admin/stack_counts")["stack_counts"] == expected
    assert callers.stranger.get("/v1/elsewhere/stack_counts")["stack_counts"]["total"] == 0
    assert callers.stranger.status("GET", "/v1/tenant/stack_counts") == 403


def test_stuck_stacks_of_all_projects_are_listed_with_their_causes(
    world: World, console: ConsoleServices
) -> None:
    callers = Callers(world, console)
    environment = {"resource_registry": {"resources": {"one": {"hooks": "pre-create"}}}}
    held = world.create("held", ONE, environment=environment)
    slow = world.create("slow", SLOW, timeout_mins=1)
    world.calm()
    stuck = {one["id"]: one for one in callers.operator.get("/v1/admin/stuck_stacks")["stuck_stacks"]}
    assert stuck.keys() == {held.id}
    assert stuck[held.id]["causes"] == ["held"]
    unreachable = Callers(world, dataclasses.replace(console, group=GroupStatus))
    causes = {
        one["id"]: one["causes"] for one in unreachable.operator.get("/v1/admin/stuck_stacks")["stuck_stacks"]
    }
    assert causes == {held.id: ["held"], slow.id: ["orphan"]}
    world.clock.now += 600
    causes = {
        one["id"]: one["causes"] for one in callers.operator.get("/v1/admin/stuck_stacks")["stuck_stacks"]
    }
    assert causes[slow.id] == ["timeout"]


def test_a_project_may_be_called_admin(world: World) -> None:
    """Its paths are as any other project's."""
    callers = Callers(world)
    assert callers.operator.status("GET", "/v1/admin/stacks") == 200
    assert callers.operator.status("GET", "/v1/admin/resource_types") == 200
    assert callers.operator.status("GET", "/v1/admin/unknown") == 404


def test_admins_set_the_quotas_of_a_project_and_its_users_see_them(callers: Callers, world: World) -> None:
    def quotas() -> Json:
        answer = callers.owner.get("/v1/tenant/quotas")
        assert answer == callers.operator.get(QUOTAS)
        return answer["quotas"]

    world.create("s", ONE)
    assert quotas()["stacks"] == {"limit": -1, "default": -1, "used": 1}
    changed = callers.operator.call("PUT", QUOTAS, {"quotas": {"stacks": 5, "snapshots": 0}})
    assert changed.json["quotas"] == quotas()
    assert (quotas()["stacks"]["limit"], quotas()["snapshots"]["limit"], quotas()["resources"]["limit"]) == (
        5,
        0,
        -1,
    )
    callers.operator.call("PUT", QUOTAS, {"quotas": {"stacks": None}})
    assert (quotas()["stacks"]["limit"], quotas()["snapshots"]["limit"]) == (-1, 0)
    assert callers.operator.status("DELETE", QUOTAS) == 204
    assert {quota["limit"] for quota in quotas().values()} == {-1}
    assert callers.stranger.status("GET", "/v1/tenant/quotas") == 403
    elsewhere = callers.stranger.get("/v1/elsewhere/quotas")["quotas"]
    assert elsewhere["stacks"] == {"limit": -1, "default": -1, "used": 0}


def test_projects_with_quotas_of_their_own_are_listed_by_pages(callers: Callers, world: World) -> None:
    def listed(query: str = "") -> list[tuple[str, Json]]:
        answer = callers.operator.get(PROJECT_QUOTAS, query)
        assert set(answer["defaults"].values()) == {-1}
        return [(item["project"], item["quotas"]) for item in answer["projects"]]

    world.create("s", ONE)
    for project in ("c", "a", "b"):
        callers.operator.call("PUT", f"/v1/admin/quotas/{project}", {"quotas": {"stacks": 5}})
    assert listed() == [(project, {"stacks": 5}) for project in "abc"]
    callers.operator.call("DELETE", "/v1/admin/quotas/b")
    assert listed("limit=1") == [("a", {"stacks": 5})]
    assert listed("limit=1&marker=a") == [("c", {"stacks": 5})]
    assert listed("marker=c") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"quotas": {}},
        {"quotas": {"servers": 1}},
        {"quotas": {"stacks": -2}},
        {"quotas": {"stacks": 2**53}},
    ],
)
def test_a_wrong_quota_is_refused(callers: Callers, body: Json) -> None:
    assert callers.operator.status("PUT", QUOTAS, body) == 400
    assert callers.operator.status("GET", f"/v1/admin/quotas/{'p' * 65}") == 400
