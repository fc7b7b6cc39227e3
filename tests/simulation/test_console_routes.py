"""Routes for consoles, for the owner of a project, an operator, and the owner of another project."""

import contextlib
import dataclasses
import json
import pathlib
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from simulation.console import Callers, console_of, report_all
from simulation.world import World
from stoker.api.shared_views import SharedViews
from stoker.db.ids import StackId
from stoker.db.states import Status
from stoker.features.diagnosis import console
from stoker.features.diagnosis.services import ConsoleServices
from stoker.ring.observer import GroupStatus

Json = typing.Any
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "one": {"type": "Sim::Server", "properties": {"after": 0}},
        "two": {"type": "Sim::Server", "properties": {"after": 0}, "depends_on": "one"},
    },
}


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
    of_owner = callers.owner.get(f"{path}/events?sort_dir=asc")["events"]
    of_operator = callers.operator.get(f"{path}/events?sort_dir=asc")["events"]
    assert [item.pop("conductor") for item in of_operator] == [None, *["host0"] * 5]
    assert of_owner == of_operator
    first, *others = of_owner
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


def test_a_graph_has_resources_edges_and_tasks(callers: Callers, world: World) -> None:
    template = {**TEMPLATE, "resources": {**TEMPLATE["resources"], "slow": {"type": "Sim::Server"}}}
    environment = {"resource_registry": {"resources": {"two": {"hooks": "pre-create"}}}}
    stack = world.create("s", template, environment=environment)
    path = f"/v1/tenant/stacks/s/{stack.id}"
    assert world.settle(lambda: bool(world.held(world.stack(stack.id))), within=60)
    graph = callers.owner.get(f"{path}/graph")["graph"]
    assert graph["stack"]["state"] == "CREATE_IN_PROGRESS"
    one, two, _ = sorted(graph["resources"], key=lambda item: ["one", "two", "slow"].index(item["name"]))
    assert (one["state"], one["required_by"], one["task"], one["breakpoint"]) == (
        *("CREATE_COMPLETE", ["two"], None, None),
    )
    assert (two["required_by"], two["breakpoint"], two["task"]["state"]) == ([], "pre-create", "held")
    assert "conductor" not in two["task"]
    view = callers.operator.get(f"{path}/graph")["graph"]
    assert all("conductor" in item["task"] for item in view["resources"] if item["task"])
    assert view["change"] == graph["change"]
    refused(callers, "GET", f"{path}/graph")


def test_a_graph_shows_nested_stacks_down_to_a_depth(callers: Callers, world: World) -> None:
    child = {"heat_template_version": "2018-08-31", "resources": {"leaf": {"type": "Sim::Server"}}}
    template = {"heat_template_version": "2018-08-31", "resources": {"inner": {"type": "child.yaml"}}}
    stack = world.create("s", template, files={"child.yaml": json.dumps(child)})
    assert world.settle(lambda: world.stack(stack.id).status == Status.COMPLETE, within=60)
    path = f"/v1/tenant/stacks/s/{stack.id}"
    [inner] = callers.owner.get(f"{path}/graph")["graph"]["resources"]
    assert inner["name"] == "inner"
    graph = callers.owner.get(f"{path}/graph", "nested_depth=5")["graph"]
    assert [(item["name"], item["stack"]) for item in graph["resources"]] == [
        ("inner", stack.id),
        ("leaf", inner["nested"]),
    ]
    assert [(one["id"], one["parent"]) for one in graph["nested_stacks"]] == [(inner["nested"], stack.id)]


def statements(world: World) -> contextlib.AbstractContextManager[list[str]]:
    """The statements that are executed meanwhile."""

    @contextlib.contextmanager
    def counted() -> Iterator[list[str]]:
        statements: list[str] = []

        def note(conn: Json, cursor: Json, statement: str, *more: Json) -> None:
            if statement.startswith(("SELECT", "WITH")):
                statements.append(statement)

        sa.event.listen(world.database.engine, "before_cursor_execute", note)
        try:
            yield statements
        finally:
            sa.event.remove(world.database.engine, "before_cursor_execute", note)

    return counted()


def test_a_hundred_consoles_cost_what_one_does(world: World, path: str) -> None:
    """Whoever polls within a second shares one read; while nothing changes, that is two statements."""
    callers = Callers(world, ConsoleServices(graphs=SharedViews(monotonic=lambda: 0.0)))
    with statements(world) as first:
        answer = callers.owner.call("GET", f"{path}/graph")
    assert answer.headers["ETag"] == f'"{answer.json["graph"]["change"]}"'
    again = {"If_None_Match": answer.headers["ETag"]}
    with statements(world) as others:
        statuses = {callers.owner.call("GET", f"{path}/graph", **again).status_code for _ in range(99)}
    assert statuses == {304}
    assert (
        callers.owner.call("GET", f"{path}/graph", query=f"since={answer.json['graph']['change']}").text == ""
    )
    assert (len(first), others) == (4, [])


def test_a_graph_changes_when_its_stack_does(world: World, path: str) -> None:
    clock = [0.0]
    callers = Callers(world, ConsoleServices(graphs=SharedViews(monotonic=lambda: clock[0])))
    first = callers.owner.call("GET", f"{path}/graph").headers["ETag"]
    stack = world.stack(StackId(path.rsplit("/", 1)[1]))
    clock[0] += 2
    with statements(world) as unchanged:
        assert callers.owner.call("GET", f"{path}/graph", If_None_Match=first).status_code == 304
    assert len(unchanged) == 2
    world.update(stack, {**TEMPLATE, "resources": {"one": TEMPLATE["resources"]["one"]}})
    assert callers.owner.call("GET", f"{path}/graph", If_None_Match=first).status_code == 304
    clock[0] += 2
    assert callers.owner.call("GET", f"{path}/graph", If_None_Match=first).status_code == 200
    world.calm()
    clock[0] += 2
    graph = callers.owner.get(f"{path}/graph")["graph"]
    assert [item["name"] for item in graph["resources"]] == ["one"]
    assert graph["stack"]["state"] == "UPDATE_COMPLETE"


def test_a_large_graph_is_cut(
    callers: Callers, world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "MOST_RESOURCES", 1)
    graph = callers.owner.get(f"{path}/graph")["graph"]
    assert ([item["name"] for item in graph["resources"]], graph["more_resources"]) == (["one"], True)


@pytest.fixture
def held(world: World) -> str:
    """The path of a stack in progress: one resource is held at a breakpoint, a conductor runs another."""
    resources = {**TEMPLATE["resources"], "slow": {"type": "Sim::Server", "properties": {"after": 1000}}}
    environment = {"resource_registry": {"resources": {"two": {"hooks": "pre-create"}}}}
    stack = world.create("s", {**TEMPLATE, "resources": resources}, environment=environment)
    assert world.settle(lambda: bool(world.held(world.stack(stack.id))), within=60)
    world.calm()
    report_all(world)
    return f"/v1/tenant/stacks/s/{stack.id}"


def test_an_inspection_names_hosts_to_operators_only(world: World, held: str) -> None:
    callers = Callers(world, console_of(world))
    of_operator = callers.operator.get(f"{held}/inspect")
    of_owner = callers.owner.get(f"{held}/inspect")
    assert of_operator["counts"] == of_owner["counts"] == {"held": 1, "running": 1}
    assert of_operator["stack"]["owner"] == "host0"
    assert "owner" not in of_owner["stack"]
    two, slow = sorted(of_owner["tasks"], key=lambda item: ["two", "slow"].index(item["resource"]))
    assert (two["state"], two["cause"]) == ("held", "breakpoint")
    assert two["commands"] == [f"openstack stack continue {held.rsplit('/', 1)[1]} two"]
    assert slow["why"].startswith("conductor 1 polls it")
    assert "host0" not in json.dumps(of_owner)
    assert "stoker-manage" not in json.dumps(of_owner)
    [task] = [item for item in of_operator["tasks"] if item["resource"] == "slow"]
    assert (task["held_by"].partition("/")[0], task["why"][:5]) == ("host0", "host0")
    refused(callers, "GET", f"{held}/inspect")


def test_an_owner_is_shown_that_nobody_is_alive(world: World, held: str) -> None:
    callers = Callers(world, dataclasses.replace(console_of(world), group=GroupStatus))
    of_owner = callers.owner.get(f"{held}/inspect")
    of_operator = callers.operator.get(f"{held}/inspect")
    for answer in (of_owner, of_operator):
        assert answer["general"][0]["why"].startswith("no conductor is alive")
    assert "host0" in json.dumps(of_operator)
    assert "host0" not in json.dumps(of_owner)


def test_an_owner_learns_nothing_of_another_projects_long_step(world: World, held: str) -> None:
    """Anybody may own a step that keeps a thread: its owner reads its name, others that there is one."""
    secret = world.create("secret-name", TEMPLATE)
    report_all(world, threads=1, threads_busy=1)
    world.pass_time(30)
    report_all(world, threads=1, threads_busy=1)
    path = f"/v1/tenant/stacks/s/{held.rsplit('/', 1)[1]}"
    callers = Callers(world, console_of(world))
    slow = f"/v1/tenant/stacks/secret-name/{secret.id}/inspect"
    assert "all threads of all conductors are busy" in json.dumps(callers.owner.get(slow))
    for answer in (callers.owner.get(slow), callers.owner.get(f"{path}/inspect")):
        assert "host0" not in json.dumps(answer)


def test_the_group_is_unreachable(world: World, held: str) -> None:
    group = "etcd at 10.0.0.7 does not answer"
    callers = Callers(world, dataclasses.replace(console_of(world), group=lambda: group))
    assert "10.0.0.7" in json.dumps(callers.operator.get(f"{held}/inspect"))
    of_owner = callers.owner.get(f"{held}/inspect")
    assert "10.0.0.7" not in json.dumps(of_owner)
    assert "conductor 1 polls it" in json.dumps(of_owner)
