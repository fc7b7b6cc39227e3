"""Snapshots: taken, kept beside the stack, restored, deleted with what they made."""

import pathlib
import typing
from dataclasses import replace

import pytest
from simulation.helpers import all_rows, created, ended, history, rows, stored, template, updated
from simulation.world import World
from stoker.db import content, resources, snapshots
from stoker.db.errors import NotFound
from stoker.db.ids import SnapshotId
from stoker.db.rows import Snapshot, Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import ActionInProgress, NotUpdatable
from stoker.engine.snapshots import delete_snapshot, take_snapshot
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import restore_stack
from stoker.template.errors import LimitExceeded

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def snapshots_of(world: World, stack: Stack) -> list[Snapshot]:
    return world.database.read(lambda conn: snapshots.of_stack(conn, stack.id))


def snapshot_taken(world: World, stack: Stack, name: str | None = None) -> SnapshotId:
    snapshot = take_snapshot(world.context, world.stack(stack.id), name)
    assert (snapshot.action, snapshot.status) == ("CREATE", Status.IN_PROGRESS)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    return snapshot.id


def restored(world: World, stack: Stack, snapshot_id: SnapshotId) -> Stack:
    restore_stack(world.context, world.stack(stack.id), snapshot_id)
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_a_snapshot_keeps_goal_and_things_and_leaves_the_resources_as_they_are(world: World) -> None:
    stack = created(world, template(a={"value": "1"}, b={"looks": 3}))
    before = rows(world, stack)
    count = len(history(world, stack))
    snapshot_taken(world, stack, "first")
    result = snapshots_of(world, stack)
    assert [(s.name, s.action, s.status, s.reason) for s in result] == [
        ("first", "CREATE", "COMPLETE", "Stack SNAPSHOT completed successfully")
    ]
    assert sorted(world.cloud.pictures.values()) == ["", "1"]
    after = rows(world, stack)
    assert {(row.action, row.status) for row in after.values()} == {("SNAPSHOT", "COMPLETE")}
    assert {n: (r.physical_id, r.data, r.attributes) for n, r in after.items()} == {
        n: (r.physical_id, r.data, r.attributes) for n, r in before.items()
    }
    copies = world.database.read(lambda conn: resources.copies(conn, stack.id, result[0].id))
    assert {c.name: (c.physical_id, c.status) for c in copies} == {
        n: (r.physical_id, "COMPLETE") for n, r in before.items()
    }
    for copy in copies:
        assert copy.data == {**before[copy.name].data, "picture": f"picture-{copy.key}"}
    assert ("s", "SNAPSHOT", "COMPLETE") in history(world, stack, count)
    assert ("a", "SNAPSHOT", "COMPLETE") in history(world, stack, count)


@pytest.mark.parametrize("rounds", range(4))
def test_a_deletion_that_ends_together_with_an_action_of_the_stack_is_over(
    tmp_path: pathlib.Path, rounds: int
) -> None:
    world = World(tmp_path, hosts=1, threads=4)
    stack = created(world, template(a={"after": 0}))
    snapshot_id = snapshot_taken(world, stack)
    delete_snapshot(world.context, world.stack(stack.id), snapshot_id)
    for _ in range(rounds):
        world.calm_once()
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.calm()
    assert snapshots_of(world, stack) == []
    assert world.cloud.pictures == {}


def test_a_restored_stack_is_what_it_was(world: World) -> None:
    document = template(a={"value": "old"}, b={})
    stack = created(world, document)
    before = rows(world, stack)
    first = snapshot_taken(world, stack)
    updated(world, stack, template(a={"value": "new"}, c={}))
    result = restored(world, stack, first)
    assert (result.action, result.status, result.reason) == (
        "RESTORE",
        Status.COMPLETE,
        "Stack RESTORE completed successfully",
    )
    after = rows(world, stack)
    assert set(after) == {"a", "b"}
    assert after["a"].physical_id == before["a"].physical_id
    held = {world.cloud.objects[str(row.physical_id)].value for row in after.values()}
    assert held == {"old", ""}
    stored = world.database.read(lambda conn: content.get(conn, world.stack(stack.id).template_id))
    assert stored["resources"]["a"]["properties"]["picture"] in world.cloud.pictures
    updated(world, stack, stored)
    assert rows(world, stack)["a"].physical_id == before["a"].physical_id
    assert world.cloud.objects[str(before["a"].physical_id)].value == "old"


def test_a_failed_restoration_is_rolled_back_where_that_is_requested(world: World) -> None:
    stack = world.create("s", template(a={"value": "old"}), disable_rollback=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    first = snapshot_taken(world, stack)
    updated(world, stack, template(a={"value": "new"}))
    world.cloud.pictures.clear()
    restore_stack(world.context, world.stack(stack.id), first)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    [item] = world.cloud.objects.values()
    assert item.value == "new"


def test_a_snapshot_that_fails_says_so_and_can_only_be_deleted(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": [{"get_resource": "a"}], "shy": True}))
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("SNAPSHOT", Status.FAILED)
    assert current.reason == "Resource SNAPSHOT failed: ResourceFailure: resources.b: told to be shy"
    assert [(s.action, s.status, s.reason) for s in snapshots_of(world, stack)] == [
        ("CREATE", "FAILED", current.reason)
    ]
    assert len(world.cloud.pictures) == 1
    with pytest.raises(NotUpdatable, match="Restoring incomplete snapshot is not supported"):
        restore_stack(world.context, current, snapshot.id)
    delete_snapshot(world.context, current, snapshot.id)
    assert world.settle(lambda: not snapshots_of(world, stack), within=60)
    assert world.cloud.pictures == {}


def test_after_a_failed_snapshot_a_rollback_goes_back_to_the_goal_before_it(world: World) -> None:
    stack = world.create("s", template(a={"value": "old", "shy": True}), disable_rollback=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    take_snapshot(world.context, world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, template(a={"value": "new"}, b={"fail": True}))
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert [item.value for item in world.cloud.objects.values()] == ["old"]


def test_a_snapshot_is_deleted_beside_what_the_stack_does(world: World) -> None:
    stack = created(world, template(a={}, b={}))
    first = snapshot_taken(world, stack)
    world.update(stack, template(a={"value": "x", "after": 30}, b={}))
    delete_snapshot(world.context, world.stack(stack.id), first)
    delete_snapshot(world.context, world.stack(stack.id), first)
    assert [(s.action, s.status) for s in snapshots_of(world, stack)] == [("DELETE", "IN_PROGRESS")]
    assert world.settle(lambda: not snapshots_of(world, stack), within=20)
    assert world.cloud.pictures == {}
    assert world.stack(stack.id).status == Status.IN_PROGRESS, "the update goes on"
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.database.read(lambda conn: resources.copies(conn, stack.id)) == []
    with pytest.raises(NotFound):
        delete_snapshot(world.context, world.stack(stack.id), first)


def test_the_end_of_an_action_leaves_the_deletion_of_a_snapshot_alone(world: World) -> None:
    stack = created(world, template(a={"after": 20}))
    first = snapshot_taken(world, stack)
    delete_snapshot(world.context, world.stack(stack.id), first)
    world.calm()
    updated(world, stack, template(a={"after": 20}, b={}))
    assert [(s.action, s.status) for s in snapshots_of(world, stack)] == [("DELETE", "IN_PROGRESS")]
    assert world.settle(lambda: not snapshots_of(world, stack), within=60)


def test_the_deletion_of_a_snapshot_outlives_its_conductor(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    first = snapshot_taken(world, stack)
    delete_snapshot(world.context, world.stack(stack.id), first)
    world.calm()
    for host in list(world.conductors):
        world.kill(host)
    world.start("fresh")
    assert world.settle(lambda: not snapshots_of(world, stack), within=60)
    assert world.cloud.pictures == {}


@pytest.mark.parametrize("moment", ["complete", "being deleted", "being taken"])
def test_a_stack_takes_its_snapshots_with_it(world: World, moment: str) -> None:
    stack = created(world, template(a={"after": 5}, b={"needs": [{"get_resource": "a"}]}))
    if moment == "being taken":
        take_snapshot(world.context, world.stack(stack.id), None)
    else:
        first = snapshot_taken(world, stack)
    if moment == "being deleted":
        delete_snapshot(world.context, world.stack(stack.id), first)
    world.calm()
    assert world.cloud.pictures or moment == "being deleted"
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("DELETE", Status.COMPLETE)
    assert (world.cloud.objects, world.cloud.pictures, snapshots_of(world, stack)) == ({}, {}, [])
    assert world.database.read(lambda conn: resources.copies(conn, stack.id)) == []
    assert all_rows(world, stack) == 0


def test_who_changes_the_stack_meanwhile_fails_the_snapshot(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    snapshot = take_snapshot(world.context, world.stack(stack.id), None)
    world.calm()
    with pytest.raises(NotUpdatable, match="Deleting in-progress snapshot"):
        delete_snapshot(world.context, world.stack(stack.id), snapshot.id)
    updated(world, stack, template(a={"value": "x"}))
    [copy] = snapshots_of(world, stack)
    assert (copy.status, copy.reason) == ("FAILED", "Stack SNAPSHOT was superseded by UPDATE")


def test_a_snapshot_that_takes_too_long_fails_with_its_stack(world: World) -> None:
    stack = world.create("s", template(a={"picture_looks": 10_000}), timeout_mins=1)
    assert world.settle(lambda: ended(world, stack), within=60)
    take_snapshot(world.context, world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=80)
    assert world.stack(stack.id).reason == "Snapshot timed out"
    assert [(s.action, s.status, s.reason) for s in snapshots_of(world, stack)] == [
        ("CREATE", "FAILED", "Snapshot timed out")
    ]


def test_no_snapshot_is_taken_while_something_is_in_progress_or_of_a_suspended_stack(world: World) -> None:
    stack = world.create("s", template(a={"after": 1}))
    with pytest.raises(ActionInProgress, match=r"already has an action \(CREATE\) in progress"):
        take_snapshot(world.context, world.stack(stack.id), None)
    assert world.settle(lambda: ended(world, stack), within=60)
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    assert world.settle(lambda: ended(world, stack), within=60)
    with pytest.raises(NotUpdatable, match="SNAPSHOT of stack s in the state SUSPEND_COMPLETE"):
        take_snapshot(world.context, world.stack(stack.id), None)
    assert snapshots_of(world, stack) == []


def test_a_copy_is_not_deleted_before_the_step_that_makes_it_has_ended(world: World) -> None:
    stack = created(world, template(a={}))
    take_snapshot(world.context, world.stack(stack.id), None)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1, "the picture is not taken yet"
    delete_stack(world.context, world.stack(stack.id))
    while world.bus.hints:
        world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    assert world.conductors["host1"].steps == []
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.cloud.objects, world.cloud.pictures) == ({}, {})


def test_what_a_lost_step_has_made_is_found_by_its_key(world: World) -> None:
    stack = created(world, template(a={}))
    take_snapshot(world.context, world.stack(stack.id), None)
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    world.conductors["host0"].run_step()
    assert len(world.cloud.pictures) == 1
    world.kill("host0")
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.cloud.objects, world.cloud.pictures) == ({}, {})


def test_secrets_in_a_snapshot_are_sealed(world: World) -> None:
    document = template(a={"secret": {"get_param": "word"}, "value": {"get_param": "word"}})
    document["parameters"] = {"word": {"type": "string", "hidden": True}}
    document["resources"]["a"]["metadata"] = {"word": {"get_param": "word"}}
    stack = world.create("s", document, parameters={"word": "s3cret"})
    assert world.settle(lambda: ended(world, stack), within=60)
    first = snapshot_taken(world, stack)
    assert "s3cret" not in stored(world)
    updated(world, stack, template(a={}))
    restored(world, stack, first)
    [item] = world.cloud.objects.values()
    assert item.value == "s3cret"
    assert "s3cret" not in stored(world)


def test_a_stack_has_no_more_snapshots_than_it_may(world: World) -> None:
    stack = created(world, template(a={}))
    world.context = replace(world.context, settings=replace(world.context.settings, max_snapshots=1))
    first = snapshot_taken(world, stack)
    with pytest.raises(LimitExceeded, match="maximum snapshots per stack, 1"):
        take_snapshot(world.context, world.stack(stack.id), None)
    delete_snapshot(world.context, world.stack(stack.id), first)
    assert world.settle(lambda: not snapshots_of(world, stack), within=60)
    snapshot_taken(world, stack)


def test_what_a_snapshot_has_of_a_thing_goes_before_the_thing(world: World) -> None:
    stack = created(world, template(a={"after": 5}))
    snapshot_taken(world, stack)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: not world.cloud.pictures, within=20)
    assert len(world.cloud.objects) == 1, "the picture's deletion has not ended"
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.cloud.objects == {}
