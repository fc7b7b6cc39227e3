"""Snapshots: taken, kept beside the stack, restored, deleted with what they made."""

import pathlib
import typing
from dataclasses import replace

import pytest
from simulation.helpers import all_rows, created, ended, rows, stored, template, told, updated
from simulation.world import World
from stoker.db import content, resources, snapshots
from stoker.db.errors import NotFound
from stoker.db.ids import SnapshotId
from stoker.db.rows import Snapshot, Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import ActionInProgress, NotUpdatable
from stoker.engine.snapshots import Snapshots
from stoker.template.errors import LimitExceeded

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def kept(world: World, stack: Stack) -> list[Snapshot]:
    return world.database.read(lambda conn: snapshots.of_stack(conn, stack.id))


def taken(world: World, stack: Stack, name: str | None = None) -> SnapshotId:
    made = world.snapshots.take(world.stack(stack.id), name)
    assert (made.action, made.status) == ("CREATE", Status.IN_PROGRESS)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    return made.id


def restored(world: World, stack: Stack, snapshot_id: SnapshotId) -> Stack:
    world.updates.restore(world.stack(stack.id), snapshot_id)
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_a_snapshot_keeps_goal_and_things_and_leaves_the_resources_as_they_are(world: World) -> None:
    stack = created(world, template(a={"value": "1"}, b={"looks": 3}))
    before, count = rows(world, stack), len(told(world, stack))
    taken(world, stack, "first")
    found = kept(world, stack)
    assert [(s.name, s.action, s.status, s.reason) for s in found] == [
        ("first", "CREATE", "COMPLETE", "Stack SNAPSHOT completed successfully")
    ]
    assert sorted(world.cloud.pictures.values()) == ["", "1"]
    after = rows(world, stack)
    assert {(row.action, row.status) for row in after.values()} == {("SNAPSHOT", "COMPLETE")}
    assert {n: (r.physical_id, r.data, r.attributes) for n, r in after.items()} == {
        n: (r.physical_id, r.data, r.attributes) for n, r in before.items()
    }
    copies = world.database.read(lambda conn: resources.copies(conn, stack.id, found[0].id))
    assert {c.name: (c.physical_id, c.status) for c in copies} == {
        n: (r.physical_id, "COMPLETE") for n, r in before.items()
    }
    for copy in copies:
        assert copy.data == {**before[copy.name].data, "picture": f"picture-{copy.key}"}
    assert ("s", "SNAPSHOT", "COMPLETE") in told(world, stack, count)
    assert ("a", "SNAPSHOT", "COMPLETE") in told(world, stack, count)


def test_a_restored_stack_is_what_it_was(world: World) -> None:
    made = template(a={"value": "old"}, b={})
    stack = created(world, made)
    before = rows(world, stack)
    first = taken(world, stack)
    updated(world, stack, template(a={"value": "new"}, c={}))
    found = restored(world, stack, first)
    assert (found.action, found.status, found.reason) == (
        "RESTORE",
        Status.COMPLETE,
        "Stack RESTORE completed successfully",
    )
    after = rows(world, stack)
    assert set(after) == {"a", "b"}
    assert after["a"].physical_id == before["a"].physical_id
    held = {world.cloud.things[str(row.physical_id)].value for row in after.values()}
    assert held == {"old", ""}
    stored = world.database.read(lambda conn: content.get(conn, world.stack(stack.id).template_id))
    assert stored["resources"]["a"]["properties"]["picture"] in world.cloud.pictures
    updated(world, stack, stored)
    assert rows(world, stack)["a"].physical_id == before["a"].physical_id
    assert world.cloud.things[str(before["a"].physical_id)].value == "old"


def test_a_failed_restoration_is_rolled_back_where_that_is_wished(world: World) -> None:
    stack = world.create("s", template(a={"value": "old"}), disable_rollback=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    first = taken(world, stack)
    updated(world, stack, template(a={"value": "new"}))
    world.cloud.pictures.clear()
    world.updates.restore(world.stack(stack.id), first)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    [thing] = world.cloud.things.values()
    assert thing.value == "new"


def test_a_snapshot_that_fails_says_so_and_can_only_be_deleted(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": [{"get_resource": "a"}], "shy": True}))
    made = world.snapshots.take(world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    found = world.stack(stack.id)
    assert (found.action, found.status) == ("SNAPSHOT", Status.FAILED)
    assert found.reason == "Resource SNAPSHOT failed: ResourceFailure: resources.b: told to be shy"
    assert [(s.action, s.status, s.reason) for s in kept(world, stack)] == [
        ("CREATE", "FAILED", found.reason)
    ]
    assert len(world.cloud.pictures) == 1
    with pytest.raises(NotUpdatable, match="Restoring incomplete snapshot is not supported"):
        world.updates.restore(found, made.id)
    world.snapshots.delete(found, made.id)
    assert world.settle(lambda: not kept(world, stack), within=60)
    assert world.cloud.pictures == {}


def test_after_a_failed_snapshot_a_rollback_goes_back_to_the_goal_before_it(world: World) -> None:
    stack = world.create("s", template(a={"value": "old", "shy": True}), disable_rollback=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.snapshots.take(world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, template(a={"value": "new"}, b={"fail": True}))
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert [thing.value for thing in world.cloud.things.values()] == ["old"]


def test_a_snapshot_is_deleted_beside_what_the_stack_does(world: World) -> None:
    stack = created(world, template(a={}, b={}))
    first = taken(world, stack)
    world.update(stack, template(a={"value": "x", "after": 30}, b={}))
    world.snapshots.delete(world.stack(stack.id), first)
    world.snapshots.delete(world.stack(stack.id), first)
    assert [(s.action, s.status) for s in kept(world, stack)] == [("DELETE", "IN_PROGRESS")]
    assert world.settle(lambda: not kept(world, stack), within=20)
    assert world.cloud.pictures == {}
    assert world.stack(stack.id).status == Status.IN_PROGRESS, "the update goes on"
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.database.read(lambda conn: resources.copies(conn, stack.id)) == []
    with pytest.raises(NotFound):
        world.snapshots.delete(world.stack(stack.id), first)


def test_the_end_of_an_action_leaves_the_deletion_of_a_snapshot_alone(world: World) -> None:
    stack = created(world, template(a={"after": 20}))
    first = taken(world, stack)
    world.snapshots.delete(world.stack(stack.id), first)
    world.calm()
    updated(world, stack, template(a={"after": 20}, b={}))
    assert [(s.action, s.status) for s in kept(world, stack)] == [("DELETE", "IN_PROGRESS")]
    assert world.settle(lambda: not kept(world, stack), within=60)


def test_the_deletion_of_a_snapshot_outlives_its_conductor(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    first = taken(world, stack)
    world.snapshots.delete(world.stack(stack.id), first)
    world.calm()
    for host in list(world.conductors):
        world.kill(host)
    world.start("fresh")
    assert world.settle(lambda: not kept(world, stack), within=60)
    assert world.cloud.pictures == {}


@pytest.mark.parametrize("moment", ["complete", "being deleted", "being taken"])
def test_a_stack_takes_its_snapshots_with_it(world: World, moment: str) -> None:
    stack = created(world, template(a={"after": 5}, b={"needs": [{"get_resource": "a"}]}))
    if moment == "being taken":
        world.snapshots.take(world.stack(stack.id), None)
    else:
        first = taken(world, stack)
    if moment == "being deleted":
        world.snapshots.delete(world.stack(stack.id), first)
    world.calm()
    assert world.cloud.pictures or moment == "being deleted"
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("DELETE", Status.COMPLETE)
    assert (world.cloud.things, world.cloud.pictures, kept(world, stack)) == ({}, {}, [])
    assert world.database.read(lambda conn: resources.copies(conn, stack.id)) == []
    assert all_rows(world, stack) == 0


def test_who_changes_the_stack_meanwhile_fails_the_snapshot(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    made = world.snapshots.take(world.stack(stack.id), None)
    world.calm()
    with pytest.raises(NotUpdatable, match="Deleting in-progress snapshot"):
        world.snapshots.delete(world.stack(stack.id), made.id)
    updated(world, stack, template(a={"value": "x"}))
    [found] = kept(world, stack)
    assert (found.status, found.reason) == ("FAILED", "Stack SNAPSHOT was superseded by UPDATE")


def test_a_snapshot_that_takes_too_long_fails_with_its_stack(world: World) -> None:
    stack = world.create("s", template(a={"picture_looks": 10_000}), timeout_mins=1)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.snapshots.take(world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=80)
    assert world.stack(stack.id).reason == "Snapshot timed out"
    assert [(s.action, s.status, s.reason) for s in kept(world, stack)] == [
        ("CREATE", "FAILED", "Snapshot timed out")
    ]


def test_no_snapshot_is_taken_while_something_is_going_on_or_of_a_suspended_stack(world: World) -> None:
    stack = world.create("s", template(a={"after": 1}))
    with pytest.raises(ActionInProgress, match=r"already has an action \(CREATE\) in progress"):
        world.snapshots.take(world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.orders.act(world.stack(stack.id), TaskKind.SUSPEND)
    assert world.settle(lambda: ended(world, stack), within=60)
    with pytest.raises(NotUpdatable, match="SNAPSHOT of stack s in the state SUSPEND_COMPLETE"):
        world.snapshots.take(world.stack(stack.id), None)
    assert kept(world, stack) == []


def test_a_copy_is_not_deleted_before_the_step_that_makes_it_has_ended(world: World) -> None:
    stack = created(world, template(a={}))
    world.snapshots.take(world.stack(stack.id), None)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1, "the picture is not taken yet"
    world.orders.delete(world.stack(stack.id))
    while world.bus.hints:
        world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    assert world.conductors["host1"].steps == []
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.cloud.things, world.cloud.pictures) == ({}, {})


def test_what_a_lost_step_has_made_is_found_by_its_key(world: World) -> None:
    stack = created(world, template(a={}))
    world.snapshots.take(world.stack(stack.id), None)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    assert len(world.cloud.pictures) == 1
    world.kill("host0")
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.cloud.things, world.cloud.pictures) == ({}, {})


def test_secrets_in_a_snapshot_are_sealed(world: World) -> None:
    made = template(a={"secret": {"get_param": "word"}, "value": {"get_param": "word"}})
    made["parameters"] = {"word": {"type": "string", "hidden": True}}
    made["resources"]["a"]["metadata"] = {"word": {"get_param": "word"}}
    stack = world.create("s", made, parameters={"word": "s3cret"})
    assert world.settle(lambda: ended(world, stack), within=60)
    first = taken(world, stack)
    assert "s3cret" not in stored(world)
    updated(world, stack, template(a={}))
    restored(world, stack, first)
    [thing] = world.cloud.things.values()
    assert thing.value == "s3cret"
    assert "s3cret" not in stored(world)


def test_a_stack_has_no_more_snapshots_than_it_may(world: World) -> None:
    stack = created(world, template(a={}))
    world.snapshots = Snapshots(
        replace(world.context, settings=replace(world.context.settings, max_snapshots=1))
    )
    first = taken(world, stack)
    with pytest.raises(LimitExceeded, match="maximum snapshots per stack, 1"):
        world.snapshots.take(world.stack(stack.id), None)
    world.snapshots.delete(world.stack(stack.id), first)
    assert world.settle(lambda: not kept(world, stack), within=60)
    taken(world, stack)


def test_what_a_snapshot_has_of_a_thing_goes_before_the_thing(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    taken(world, stack)
    world.orders.delete(world.stack(stack.id))
    assert world.settle(lambda: not world.cloud.pictures, within=20)
    assert len(world.cloud.things) == 1, "the picture's deletion has not ended"
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.things == {}
