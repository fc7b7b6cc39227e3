"""Abandon, export and adopt of stacks with stacks inside: nothing of what is there is touched."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import rows
from simulation.nested import INNER, child, children, created, group, hot, inner, server, settled
from simulation.nested import autoscaling_group as autoscaling
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.errors import ActionInProgress
from stoker.engine.exports import abandon_stack
from stoker.engine.stacks import delete_stack

Json = typing.Any
MIDDLE = "file:///middle.yaml"
FILES = {INNER: inner(), MIDDLE: json.dumps(hot({"n": child(value="deep"), "o": server()}))}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def tree() -> Json:
    return hot(
        {
            "m": {"type": MIDDLE},
            "g": group(3, member={"value": "%index%"}, removal_policies=[{"resource_list": ["1"]}]),
            "a": autoscaling(2),
            "after": {**server(), "depends_on": ["m", "g", "a"]},
        }
    )


def abandoned(world: World, stack: Stack) -> Json:
    return json.loads(json.dumps(abandon_stack(world.context, world.stack(stack.id))))


def test_a_tree_goes_from_one_hand_to_the_other_and_lives_on(world: World) -> None:
    stack = created(world, tree(), files=FILES)
    assert stack.status == Status.COMPLETE, stack.reason
    objects = dict(world.cloud.objects)
    before = rows(world, stack)
    assert len(objects) == 8
    exported = json.loads(json.dumps(world.export(world.stack(stack.id))))
    document = abandoned(world, stack)
    assert document["resources"]["m"]["resources"]["n"]["resources"]["s"]["resource_id"] in objects
    assert document["resources"] == exported["resources"]
    world.calm()
    assert children(world, stack) == {}
    assert world.cloud.objects == objects, "it is left alone"
    other = settled(world, world.adopt("t", document))
    assert (other.action, other.status) == ("ADOPT", Status.COMPLETE), other.reason
    assert world.cloud.objects == objects, "and nothing is made"
    after = rows(world, other)
    assert after["g"].attributes["refs_map"] == before["g"].attributes["refs_map"]
    assert after["a"].attributes["refs"] == before["a"].attributes["refs"]
    child_rows = children(world, other)
    assert {(row.action, row.status) for row in child_rows.values()} == {("ADOPT", "COMPLETE")}
    world.update(other, tree(), files=FILES)
    assert settled(world, other).status == Status.COMPLETE
    assert world.cloud.objects == objects, "an update changes nothing of it"
    delete_stack(world.context, world.stack(other.id))
    assert settled(world, other).status == Status.COMPLETE
    assert world.cloud.objects == {}


def test_what_is_in_the_middle_of_something_is_not_abandoned(world: World) -> None:
    files = {INNER: inner(looks=100, after=10)}
    stack = world.create("s", hot({"n": child()}), files=files)
    world.calm()
    with pytest.raises(ActionInProgress):
        abandon_stack(world.context, world.stack(stack.id))
    assert len(children(world, stack)) == 1


def test_a_nested_stack_of_which_the_document_says_nothing_is_not_made_again(world: World) -> None:
    """Least of all is the stack taken over whose id it names: it may be anybody's."""
    stack = created(world, hot({"n": child()}))
    document = json.loads(json.dumps(world.export(stack)))
    entry = document["resources"]["n"]
    del entry["resources"]
    assert entry["resource_id"] == children(world, stack)["n"].id
    other = settled(world, world.adopt("t", document))
    assert (other.action, other.status) == ("ADOPT", Status.FAILED)
    assert "says nothing of the stack that it was" in other.reason
    delete_stack(world.context, other)
    assert settled(world, other).status == Status.COMPLETE
    assert children(world, stack)["n"].status == "COMPLETE"
    assert len(world.cloud.objects) == 1


def test_what_inside_cannot_be_adopted_is_reported_with_its_path(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    document = abandoned(world, stack)
    world.cloud.objects.clear()
    other = settled(world, world.adopt("t", document))
    assert other.reason == "Resource ADOPT failed: ResourceFailure: resources.n.resources.s: it is gone"


def test_an_adoption_that_is_superseded_before_it_begins_is_made_up_for(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    objects = dict(world.cloud.objects)
    document = abandoned(world, stack)
    other = world.adopt("t", document)
    world.bus.hints.clear()
    world.update(other, hot({"n": child()}), files={INNER: inner()})
    assert settled(world, other).status == Status.COMPLETE
    assert world.cloud.objects == objects


def test_a_step_that_is_lost_finds_the_child_that_it_has_begun(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    objects = dict(world.cloud.objects)
    other = world.adopt("t", abandoned(world, stack))
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    assert len(children(world, other)) == 1
    world.kill("host0")
    assert settled(world, other, within=120).status == Status.COMPLETE
    assert world.cloud.objects == objects
