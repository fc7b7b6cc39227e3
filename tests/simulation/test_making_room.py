"""A replacement needs what its resource has: that is released before, and taken back where it is kept."""

import pathlib
import typing

import pytest
from simulation.helpers import cancel, created, ended, hanging, on, pass_grace, rows
from simulation.restrictions import server, state, template, update, volume
from simulation.world import World
from stoker.db import resources
from stoker.db.rows import Stack
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.steps import Poll

Json = typing.Any
OLD = template(a=volume(slot="one"))
NEW = template(a=volume(slot="one", size=2))
HANGING = template(a=volume(slot="one", size=2, hangs=["prepare"]))
"""Room is made, and then the call does not return."""


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def owner(world: World, stack: Stack) -> bool:
    """Return whether the present physical resource has the slot."""
    return world.cloud.slots == {"one": rows(world, stack)["a"].physical_id}


def settled(world: World, stack: Stack, within: float = 120) -> tuple[str, str]:
    assert world.settle(lambda: ended(world, stack), within=within)
    assert world.cloud.wrong == []
    return state(world.stack(stack.id))


def test_the_replacement_gets_what_the_resource_had(world: World) -> None:
    stack = created(world, OLD)
    before = rows(world, stack)["a"]
    assert state(update(world, stack, NEW)) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id != before.physical_id
    assert owner(world, stack)
    assert world.cloud.calls == [f"prepare {before.physical_id}"]


def test_the_creation_of_a_replacement_is_the_first_attempt_at_it(world: World) -> None:
    """Types search for results of earlier attempts, and wait for them."""
    stack = created(world, OLD)
    update(world, stack, NEW)
    assert world.cloud.attempts == [1, 1]
    world.update(stack, template(a=volume(slot="one", size=3, hangs=["create"])))
    assert world.settle(lambda: bool(hanging(world)), within=60)
    world.kill(hanging(world)[0].host)
    assert settled(world, stack) == ("UPDATE", "COMPLETE")
    first, *later = world.cloud.attempts[2:]
    assert first == 1
    assert all(attempt > 1 for attempt in later)


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "CHECK"])
def test_a_failed_resource_makes_room_too(world: World, action: str) -> None:
    stack = created(world, OLD)
    before = rows(world, stack)["a"]
    failed = {"action": action, "status": "FAILED"}
    world.database.write(lambda conn: resources.change_many(conn, {before.id: failed}))
    del world.cloud.objects[str(before.physical_id)]
    assert state(update(world, stack, OLD)) == ("UPDATE", "COMPLETE")
    assert owner(world, stack)


def test_a_rollback_takes_it_back_from_the_replacement(world: World) -> None:
    stack = created(world, template(a=volume(slot="one"), b=server(needs=on("a"))))
    before = rows(world, stack)["a"]
    broken = template(a=volume(slot="one", size=2), b=server(needs=on("a"), fail=True))
    world.update(stack, broken, disable_rollback=False)
    assert settled(world, stack) == ("ROLLBACK", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert owner(world, stack)
    assert len(world.cloud.objects) == 2


def test_a_rollback_replaces_a_resource_whose_thing_had_to_make_room(world: World) -> None:
    def machine(**properties: Json) -> Json:
        return {**volume(slot="one", **properties), "type": "Sim::Machine"}

    def behind(**properties: Json) -> Json:
        return {**server(**properties), "depends_on": "a"}

    stack = created(world, template(a=machine(), b=behind()))
    before = rows(world, stack)["a"]
    broken = template(a=machine(size=2), b=behind(fail=True))
    world.update(stack, broken, disable_rollback=False)
    assert settled(world, stack) == ("ROLLBACK", "COMPLETE")
    after = rows(world, stack)["a"]
    assert after.physical_id not in (None, before.physical_id)
    assert after.properties == before.properties
    assert owner(world, stack)
    assert len(world.cloud.objects) == 2


def test_it_is_taken_back_when_nothing_makes_the_replacement_any_more(world: World) -> None:
    stack = created(world, OLD)
    before = rows(world, stack)["a"]
    world.update(stack, template(a=volume(slot="one", size=2, looks=9, after=50)), disable_rollback=False)
    world.calm()
    assert owner(world, stack)  # The replacement, which is being made.
    cancel(world, stack, rollback=True)
    assert settled(world, stack) == ("ROLLBACK", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert owner(world, stack)


def test_a_conductor_that_dies_while_room_is_made_loses_nothing(world: World) -> None:
    stack = created(world, OLD)
    world.update(stack, HANGING)
    assert world.settle(lambda: bool(hanging(world)), within=60)
    world.kill(hanging(world)[0].host)
    assert settled(world, stack) == ("UPDATE", "COMPLETE")
    assert owner(world, stack)
    assert len(world.cloud.objects) == 1


def test_an_update_that_keeps_the_resource_after_all_takes_it_back(world: World) -> None:
    stack = created(world, OLD)
    before = rows(world, stack)["a"]
    world.update(stack, HANGING)
    assert world.settle(lambda: bool(hanging(world)), within=60)
    assert world.cloud.slots == {}
    world.update(stack, OLD)
    pass_grace(world)
    assert settled(world, stack) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert owner(world, stack)
    assert rows(world, stack)["a"].replaces is None
    calls = list(world.cloud.calls)
    assert state(update(world, stack, OLD)) == ("UPDATE", "COMPLETE")
    assert world.cloud.calls == calls  # Nothing is left to be taken back.


def test_the_same_after_the_conductor_has_died_too(world: World) -> None:
    stack = created(world, OLD)
    world.update(stack, HANGING)
    assert world.settle(lambda: bool(hanging(world)), within=60)
    world.kill(hanging(world)[0].host)
    world.update(stack, OLD)
    assert settled(world, stack) == ("UPDATE", "COMPLETE")
    assert owner(world, stack)


def test_making_room_may_take_some_polls(world: World) -> None:
    stack = created(world, OLD)
    world.cloud.room["a"] = [Poll({}, 5.0) for _ in range(9)]
    began = world.clock.now
    assert state(update(world, stack, NEW)) == ("UPDATE", "COMPLETE")
    assert world.clock.now - began >= 45
    assert owner(world, stack)
    assert len(world.cloud.calls) == 10
    assert not [line for line in world.cloud.calls if line.startswith("restore")]


def test_a_busy_service_is_called_again(world: World) -> None:
    stack = created(world, OLD)
    world.cloud.room["a"] = [RetryableError("busy"), RetryableError("busy")]
    assert state(update(world, stack, NEW)) == ("UPDATE", "COMPLETE")
    assert owner(world, stack)


def test_a_retry_may_name_the_shortest_pause(world: World) -> None:
    stack = created(world, OLD)
    world.cloud.room["a"] = [RetryableError("busy", at_least=40.0)]
    began = world.clock.now
    assert state(update(world, stack, NEW)) == ("UPDATE", "COMPLETE")
    assert world.clock.now - began >= 40


@pytest.mark.parametrize("error", [RetryableError("busy"), PermanentError("no")])
def test_where_no_room_can_be_made_the_update_fails_and_the_next_one_heals(
    world: World, error: Exception
) -> None:
    stack = created(world, OLD)
    before = rows(world, stack)["a"]
    world.cloud.room["a"] = [error] * 20  # More than a step is retried.
    world.update(stack, NEW)
    assert settled(world, stack, 600) == ("UPDATE", "FAILED")
    assert str(error) in world.stack(stack.id).reason
    assert rows(world, stack)["a"].id == before.id
    assert len(world.cloud.objects) == 1
    world.cloud.room["a"] = []
    world.cloud.free_slots(before.physical_id)  # What it has released before it failed.
    assert state(update(world, stack, OLD)) == ("UPDATE", "COMPLETE")
    assert rows(world, stack)["a"].id == before.id
    assert owner(world, stack)
