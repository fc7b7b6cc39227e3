"""``external_id``: a resource for a thing that is there already: it is looked at, and else left alone."""

import pathlib
import typing

import pytest
from simulation.cloud import Thing
from simulation.helpers import (
    cancel,
    created,
    ended,
    foretold,
    hanging,
    on,
    pass_grace,
    rows,
    template,
    updated,
)
from simulation.world import World
from stoker.db.states import Status, TaskKind

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    made = World(tmp_path, hosts=2, threads=4)
    made.cloud.things["thing-x"] = Thing("elsewhere", "x", "k", (), "theirs")
    return made


def external(name: str = "thing-x", **properties: Json) -> Json:
    made = template(a={"value": "ours", **properties}, b={"needs": on("a")})
    made["heat_template_version"] = "2016-10-14"
    made["parameters"] = {"thing": {"type": "string", "default": name}}
    made["resources"]["a"]["external_id"] = {"get_param": "thing"}
    return made


def test_the_thing_is_looked_at_and_neither_made_nor_changed_nor_deleted(world: World) -> None:
    before = world.cloud.things["thing-x"]
    stack = created(world, external())
    assert rows(world, stack)["a"].physical_id == "thing-x"
    assert world.cloud.things[str(rows(world, stack)["b"].physical_id)].needs == ("thing-x",)
    updated(world, stack, external(size=3))
    assert rows(world, stack)["a"].physical_id == "thing-x"
    world.orders.act(world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.cloud.things == {"thing-x": before}


def test_what_is_not_there_fails_the_resource_and_nothing_is_made(world: World) -> None:
    stack = world.create("s", external("thing-77"))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).reason == "Resource CREATE failed: ResourceFailure: resources.a: it is gone"
    assert set(world.cloud.things) == {"thing-x"}


def test_it_cannot_become_another_thing_or_the_stacks_own(world: World) -> None:
    stack = created(world, external())
    own = external()
    del own["resources"]["a"]["external_id"]
    for goal in (external("thing-y"), own):
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
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    world.settle(lambda: False, within=30)
    assert set(world.cloud.things) == {"thing-x"}


def test_its_properties_are_neither_required_nor_checked(world: World) -> None:
    goal = external(size="no number", unknown=1)
    goal["resources"]["c"] = {"type": "OS::Heat::Value", "external_id": "v"}
    stack = created(world, goal)
    assert [rows(world, stack)[name].physical_id for name in ("a", "c")] == ["thing-x", "v"]
    foreseen = {name: kind for name, (kind, _) in foretold(world, stack, external(size="another")).items()}
    assert foreseen == {"a": "unchanged", "b": "unchanged", "c": "deleted"}
    updated(world, stack, external(size="another"))
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert set(world.cloud.things) == {"thing-x"}
