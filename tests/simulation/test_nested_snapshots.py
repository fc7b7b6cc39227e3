"""Snapshots of stacks with stacks inside: of all levels, restored and deleted as one."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import rows
from simulation.nested import INNER, child, children, created, group, hot, inner, server, settled
from simulation.world import World
from stoker.db import snapshots
from stoker.db.ids import SnapshotId, StackId
from stoker.db.rows import Snapshot, Stack
from stoker.db.states import Status
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.snapshots import delete_snapshot, take_snapshot
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import restore_stack, update_stack

Json = typing.Any
MIDDLE = "file:///middle.yaml"


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=3, threads=4)


def files(**properties: Json) -> Json:
    return {INNER: inner(**properties), MIDDLE: json.dumps(hot({"n": child(value="deep"), "o": server()}))}


def tree(value: str = "x") -> Json:
    group_of_two = group(2, member={"value": f"{value}-%index%"})
    return hot({"m": {"type": MIDDLE}, "n": child(value=value), "g": group_of_two, "s": server(value=value)})


def snapshots_of(world: World, stack_id: str) -> list[Snapshot]:
    return world.database.read(lambda conn: snapshots.of_stack(conn, StackId(stack_id)))


def snapshot_taken(world: World, stack: Stack) -> SnapshotId:
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    ended = settled(world, stack)
    assert (ended.action, ended.status) == ("SNAPSHOT", Status.COMPLETE), ended.reason
    return snapshot.id


def values(world: World) -> dict[str, str]:
    return {name: item.value for name, item in world.cloud.objects.items()}


def test_all_levels_are_in_it_and_return_with_it(world: World) -> None:
    stack = created(world, tree("old"), files=files())
    before = values(world)
    objects = set(world.cloud.objects)
    assert sorted(before.values()) == ["", "deep", "old", "old", "old-0", "old-1"]
    first = snapshot_taken(world, stack)
    assert sorted(world.cloud.pictures.values()) == sorted(before.values())
    below = children(world, stack)
    assert {(row.action, row.status) for row in below.values()} == {("SNAPSHOT", "COMPLETE")}
    assert [len(snapshots_of(world, row.id)) for row in below.values()] == [1, 1, 1]
    world.update(stack, tree("new"), files=files())
    assert settled(world, stack).status == Status.COMPLETE
    assert sorted(values(world).values()) == ["", "deep", "new", "new", "new-0", "new-1"]
    for key, item in world.cloud.objects.items():  # As if somebody had written to them since.
        world.cloud.objects[key] = item._replace(value="spoiled")
    restore_stack(world.context, world.stack(stack.id), first)
    ended = settled(world, stack)
    assert (ended.action, ended.status) == ("RESTORE", Status.COMPLETE), ended.reason
    assert values(world) == before
    assert {row.id for row in children(world, stack).values()} == {row.id for row in below.values()}
    update_stack(world.context, world.stack(stack.id), UpdateRequest(Goal({}), existing=True))
    assert settled(world, stack).status == Status.COMPLETE
    assert values(world) == before, "an update that keeps the environment takes nothing back"
    assert set(world.cloud.objects) == objects
    assert world.cloud.wrong == []


def test_the_parent_is_parked_while_its_child_takes_its_own(world: World) -> None:
    stack = created(world, hot({"n": child()}), files={INNER: inner(picture_looks=3)})
    take_snapshot(world.context, world.stack(stack.id), None)
    world.calm()
    assert sum(c.loop.in_progress for c in world.awake()) == 1, "the child's own task"
    assert settled(world, stack).status == Status.COMPLETE


def test_it_is_deleted_on_all_levels(world: World) -> None:
    stack = created(world, tree(), files=files())
    first = snapshot_taken(world, stack)
    second = snapshot_taken(world, stack)
    delete_snapshot(world.context, world.stack(stack.id), first)
    assert world.settle(lambda: len(world.cloud.pictures) == 6, within=60)
    assert [each.id for each in snapshots_of(world, stack.id)] == [second]
    assert [len(snapshots_of(world, row.id)) for row in children(world, stack).values()] == [1, 1, 1]
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE
    assert (world.cloud.pictures, world.cloud.objects) == ({}, {})


def test_a_failure_inside_is_reported_with_its_path_and_what_was_made_can_be_deleted(world: World) -> None:
    stack = created(world, tree(), files=files(shy=True))
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    ended = settled(world, stack)
    assert (ended.action, ended.status) == ("SNAPSHOT", Status.FAILED)
    assert ended.reason.startswith("Resource SNAPSHOT failed: ResourceFailure: resources.")
    assert ended.reason.endswith("resources.s: told to be shy")
    delete_snapshot(world.context, world.stack(stack.id), snapshot.id)
    assert world.settle(lambda: not world.cloud.pictures and not snapshots_of(world, stack.id), within=60)
    assert [snapshots_of(world, row.id) for row in children(world, stack).values()] == [[], [], []]


def test_a_step_that_is_lost_finds_the_snapshot_that_it_has_begun(world: World) -> None:
    stack = created(world, hot({"n": child()}))
    take_snapshot(world.context, world.stack(stack.id), None)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    below = children(world, stack)["n"].id
    assert len(snapshots_of(world, below)) == 1
    world.kill("host0")
    assert settled(world, stack, within=120).status == Status.COMPLETE
    assert len(snapshots_of(world, below)) == 1
    assert len(world.cloud.pictures) == 1


def test_a_nested_stack_that_is_gone_since_is_made_again(world: World) -> None:
    stack = created(world, hot({"n": child(value="x"), "s": server()}))
    first = snapshot_taken(world, stack)
    world.update(stack, hot({"s": server()}))
    assert settled(world, stack).status == Status.COMPLETE
    restore_stack(world.context, world.stack(stack.id), first)
    assert settled(world, stack).status == Status.COMPLETE
    assert sorted(values(world).values()) == ["", "x"]
    assert rows(world, stack)["n"].status == Status.COMPLETE
    delete_snapshot(world.context, world.stack(stack.id), first)
    assert world.settle(lambda: not snapshots_of(world, stack.id), within=60)
