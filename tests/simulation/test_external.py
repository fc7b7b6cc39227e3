"""``external_id``: a resource for a thing that is there already: it is read, and else left alone."""

import pathlib
import typing

import pytest
from simulation.cloud import CloudObject
from simulation.helpers import (
    cancel,
    created,
    ended,
    hanging,
    on,
    pass_grace,
    previewed,
    rows,
    template,
    updated,
)
from simulation.world import World
from stoker.db.states import Status, TaskKind
from stoker.engine.stacks import act_on_stack, delete_stack

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    simulated = World(tmp_path, hosts=2, threads=4)
    simulated.cloud.objects["thing-x"] = CloudObject("elsewhere", "x", "k", (), "theirs")
    return simulated


def external(name: str = "thing-x", **properties: Json) -> Json:
    document = template(a={"value": "ours", **properties}, b={"needs": on("a")})
    document["heat_template_version"] = "2016-10-14"
    document["parameters"] = {"thing": {"type": "string", "default": name}}
    document["resources"]["a"]["external_id"] = {"get_param": "thing"}
    return document


def test_the_thing_is_looked_at_and_neither_made_nor_changed_nor_deleted(world: World) -> None:
    before = world.cloud.objects["thing-x"]
    stack = created(world, external())
    assert rows(world, stack)["a"].physical_id == "thing-x"
    assert world.cloud.objects[str(rows(world, stack)["b"].physical_id)].needs == ("thing-x",)
    updated(world, stack, external(size=3))
    assert rows(world, stack)["a"].physical_id == "thing-x"
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: ended(world, stack), within=60)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.cloud.objects == {"thing-x": before}


def test_what_is_not_there_fails_the_resource_and_nothing_is_made(world: World) -> None:
    stack = world.create("s", external("thing-77"))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).reason == "Resource CREATE failed: ResourceFailure: resources.a: it is gone"
    assert set(world.cloud.objects) == {"thing-x"}


def test_it_cannot_become_another_thing_or_the_stacks_own(world: World) -> None:
    stack = created(world, external())
    document = external()
    del document["resources"]["a"]["external_id"]
    for goal in (external("thing-y"), document):
        world.update(stack, goal)
        assert world.settle(lambda: ended(world, stack), within=60)
        text = "resources.a: Update to property external_id of a (Sim::Server) is not supported."
        assert world.stack(stack.id).reason.endswith(text), world.stack(stack.id).reason
        updated(world, stack, external())
    assert rows(world, stack)["a"].physical_id == "thing-x"


def test_a_look_that_hangs_and_is_detached_leaves_the_thing_alone(world: World) -> None:
    stack = world.create("s", external(hangs=["check"]))
    world.calm()
    cancel(world, stack)
    pass_grace(world)
    [conductor] = hanging(world)
    conductor.go_on()
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    world.settle(lambda: False, within=30)
    assert set(world.cloud.objects) == {"thing-x"}


def test_its_properties_are_neither_required_nor_checked(world: World) -> None:
    goal = external(size="no number", unknown=1)
    goal["resources"]["c"] = {"type": "OS::Heat::Value", "external_id": "v"}
    stack = created(world, goal)
    assert [rows(world, stack)[name].physical_id for name in ("a", "c")] == ["thing-x", "v"]
    foreseen = {name: kind for name, (kind, _) in previewed(world, stack, external(size="another")).items()}
    assert foreseen == {"a": "unchanged", "b": "unchanged", "c": "deleted"}
    updated(world, stack, external(size="another"))
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert set(world.cloud.objects) == {"thing-x"}
