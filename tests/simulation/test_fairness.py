"""Projects take turns: whoever has much to do lets others have threads."""

import json
import pathlib

import pytest
from simulation.helpers import ended, on, template
from simulation.world import World
from stoker.conductor.steps import computing, returned
from stoker.conductor.steps.computing import SMALL
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.planning.requests import CreateRequest, Goal
from stoker.engine.stacks import create_stack, delete_stack

THREADS = 8
TURN = 2 * THREADS
"""Steps after which each project that waits has had a turn.  A resource of the simulation takes three."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1, threads=THREADS)


def create(world: World, project: str, name: str, **resources: object) -> Stack:
    stack = create_stack(world.context, CreateRequest(project, name, Goal(template(**resources))))
    while world.bus.hints:
        world.deliver(0, "host0")
    return stack


def steps_until(world: World, small: Stack) -> int:
    """The steps that the only conductor runs until the stack has ended; one at a time, the oldest first."""
    [conductor] = world.conductors.values()
    count = 0
    while not ended(world, small):
        conductor.run_once()
        while world.bus.hints:
            world.deliver(0, "host0")
        if conductor.steps:
            conductor.run_step()
            count += 1
        assert count < 500
    return count


def test_a_small_stack_does_not_wait_for_the_tasks_of_a_large_one(world: World) -> None:
    large = create(world, "hog", "large", **{f"r{number}": {} for number in range(100)})
    world.conductors["host0"].run_once()
    small = create(world, "other", "small", a={})
    assert steps_until(world, small) <= 3 * TURN
    assert not ended(world, large)


def test_a_small_stack_does_not_wait_for_many_stacks_of_one_project(world: World) -> None:
    for number in range(20):
        create(world, "hog", f"s{number}", **{f"r{index}": {} for index in range(5)})
    world.conductors["host0"].run_once()
    small = create(world, "other", "small", a={})
    assert steps_until(world, small) <= 3 * TURN


def test_a_small_stack_does_not_wait_for_chains_that_continue(world: World) -> None:
    chains: dict[str, object] = {}
    for chain in range(3 * THREADS):
        for link in range(6):
            chains[f"c{chain}-{link}"] = {"needs": on(f"c{chain}-{link - 1}")} if link else {}
    for hog in ("hog1", "hog2"):
        create(world, hog, "large", **chains)
    world.conductors["host0"].run_once()
    small = create(world, "other", "small", a={}, b={"needs": on("a")})
    assert steps_until(world, small) <= 6 * TURN


def test_polls_of_one_project_leave_threads_to_others(world: World) -> None:
    large = create(world, "hog", "large", **{f"r{number}": {"looks": 50, "after": 1} for number in range(60)})
    [conductor] = world.conductors.values()
    while conductor.run_once() == 0.0 or conductor.steps:
        while conductor.steps:
            conductor.run_step()
    assert conductor.loop.in_progress == 60
    world.pass_time(1)
    small = create(world, "other", "small", a={})
    assert steps_until(world, small) <= 3 * TURN
    assert not ended(world, large)


def test_one_project_alone_has_all_threads_but_a_quarter(world: World) -> None:
    create(world, "hog", "large", **{f"r{number}": {} for number in range(100)})
    [conductor] = world.conductors.values()
    conductor.run_once()
    assert THREADS * 3 // 4 <= conductor.loop.busy < THREADS + 4


def value(content: object) -> dict[str, object]:
    return {"type": "OS::Heat::Value", "properties": {"value": content}}


def plain(**resources: object) -> dict[str, object]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def repeated(source: str) -> dict[str, object]:
    items = {"get_attr": [source, "value"]}
    return {"repeat": {"for_each": {"%a%": items, "%b%": items}, "template": "%a%-%b%"}}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a project have one turn in some seconds."""
    monkeypatch.setattr(computing, "BURST", 0)
    monkeypatch.setattr(computing, "RATE", 2 * SMALL.bytes)


MUCH = {
    "properties": value(repeated("a")),
    "metadata": {**value("x"), "metadata": {"all": repeated("a")}},
    "nested": {"type": "child.yaml", "properties": {"items": {"get_attr": ["a", "value"]}}},
}
"""Resources whose steps compute much, by what they compute."""
ITEMS = {"get_param": "items"}
CHILD = {
    "heat_template_version": "2021-04-16",
    "parameters": {"items": {"type": "json"}},
    "resources": {"v": value({"repeat": {"for_each": {"%a%": ITEMS, "%b%": ITEMS}, "template": "%a%-%b%"}})},
}


def create_large(world: World, resource: dict[str, object]) -> Stack:
    """Create a stack of a list and of resources whose steps multiply it."""
    lists = [f"item{number}" for number in range(100)]
    resources = {"a": value(lists), **{f"r{number}": resource for number in range(6)}}
    goal = Goal(plain(**resources), files={"child.yaml": json.dumps(CHILD)})
    return create_stack(world.context, CreateRequest("hog", "large", goal))


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("resource", MUCH.values(), ids=MUCH)
def test_a_project_that_computes_much_waits_and_completes(world: World, resource: dict[str, object]) -> None:
    stack = create_large(world, resource)
    began = world.clock.now
    assert not world.settle(lambda: ended(world, stack), within=3)
    small = create_stack(world.context, CreateRequest("other", "small", Goal(template(a={}))))
    assert world.settle(lambda: ended(world, small), within=5)
    assert not ended(world, stack)
    assert world.settle(lambda: ended(world, stack), within=300)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    assert world.clock.now > began + 6, "it had to wait"


@pytest.mark.usefixtures("slow")
def test_a_project_that_computes_much_is_not_kept_from_deleting(world: World) -> None:
    """One turn of a deletion says if a resource was created, and with what."""
    stack = create_large(world, MUCH["properties"])
    assert not world.settle(lambda: ended(world, stack), within=3)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).deleted_at is not None


def test_an_attribute_that_is_too_large_fails_its_resource(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returned, "MOST_STORED", 1000)
    goal = Goal(plain(a=value("x" * 100), b=value(["x" * 50] * 20)))
    stack = create_stack(world.context, CreateRequest("p", "s", goal))
    assert world.settle(lambda: ended(world, stack), within=100)
    reason = world.stack(stack.id).reason
    assert "resources.b: the attribute value has 1080 bytes as JSON" in reason
    assert "the limit of a stored attribute is 1000" in reason
