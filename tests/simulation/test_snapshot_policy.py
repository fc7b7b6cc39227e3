"""``deletion_policy: Snapshot``: a copy of the thing is made first, and stays."""

import pathlib
import typing

import pytest
from simulation.helpers import cancel, created, ended, template, updated
from simulation.world import World
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def copied(**properties: Json) -> Json:
    """A template whose first resource is copied before it is deleted."""
    document = template(a={"value": "precious", **properties}, b={})
    document["resources"]["a"]["deletion_policy"] = "Snapshot"
    return document


def test_a_copy_is_made_before_the_thing_is_deleted(world: World) -> None:
    stack = created(world, copied(picture_looks=3))
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.cloud.objects == {}
    assert list(world.cloud.pictures.values()) == ["precious"]


def test_a_copy_is_made_of_what_an_update_removes(world: World) -> None:
    stack = created(world, copied())
    updated(world, stack, template(b={}))
    assert len(world.cloud.objects) == 1
    assert list(world.cloud.pictures.values()) == ["precious"]


def test_nothing_is_deleted_without_its_copy(world: World) -> None:
    stack = created(world, copied(shy=True))
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.FAILED
    assert "told to be shy" in world.stack(stack.id).reason
    assert [item.resource for item in world.cloud.objects.values()] == ["a"]


def test_what_was_never_complete_is_deleted_without_a_copy(world: World) -> None:
    stack = world.create("s", copied(endless=True, after=2, shy=True))
    assert world.settle(lambda: len(world.cloud.objects) == 2, within=60)
    cancel(world, stack)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert [item.resource for item in world.cloud.objects.values()] == ["a", "b"]
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
