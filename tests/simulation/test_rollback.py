"""Rollback and cancel: back to the last complete goal, by itself after a failure or because the user asks."""

import pathlib
import typing
from unittest import mock

import pytest
from simulation.helpers import all_rows, cancel, created, ended, history, on, rows, template, updated
from simulation.world import TIMEOUT, World
from stoker.conductor.duties import rollbacks
from stoker.db import events
from stoker.db.events import EventQuery
from stoker.db.states import Status, TaskState
from stoker.db.work import commit, endings, tasks
from stoker.engine.errors import NotUpdatable
from stoker.engine.stacks import delete_stack
from stoker.engine.updates import cancel_action

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def test_a_failed_creation_is_rolled_back_where_that_is_requested(world: World) -> None:
    document = template(a={}, b={"needs": on("a"), "fail": True})
    stack = world.create("s", document, disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    current = world.stack(stack.id)
    assert (current.status, current.reason) == (Status.COMPLETE, "Stack ROLLBACK completed successfully")
    assert world.cloud.objects == {}
    assert rows(world, stack) == {}
    of_stack = [event[1:] for event in history(world, stack) if event[0] == "s"]
    assert of_stack == [
        ("CREATE", "IN_PROGRESS"),
        ("CREATE", "FAILED"),
        ("ROLLBACK", "IN_PROGRESS"),
        ("ROLLBACK", "COMPLETE"),
    ]


def test_a_failed_update_goes_back_to_what_was(world: World) -> None:
    stack = created(world, template(a={"value": "old"}, b={"needs": on("a")}, c={}))
    before = rows(world, stack)
    bad = template(a={"value": "new"}, b={"needs": on("a"), "fail": True}, d={})
    world.update(stack, bad, disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    after = rows(world, stack)
    assert set(after) == {"a", "b", "c"}
    assert after["a"].physical_id == before["a"].physical_id
    assert after["a"].attributes is not None
    assert after["a"].attributes["value"] == "old"
    assert after["c"].physical_id != before["c"].physical_id, "it had been deleted already, as with Heat"
    assert set(world.cloud.objects) == {row.physical_id for row in after.values()}
    assert world.cloud.wrong == []


def test_a_rollback_takes_what_was_replaced_and_is_still_there(world: World) -> None:
    stack = created(world, template(a={}))
    before = rows(world, stack)["a"]
    bad = template(a={"size": 2}, b={"needs": on("a"), "fail": True})
    world.update(stack, bad, disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert rows(world, stack)["a"].physical_id == before.physical_id
    assert set(world.cloud.objects) == {before.physical_id}


def test_a_rollback_brings_the_tags_back(world: World) -> None:
    stack = world.create("s", template(a={}), tags=["old", "kept"])
    assert world.settle(lambda: ended(world, stack), within=60)
    for tags in (["new"], ["newer"]):  # The second update begins where the first one's rollback has ended.
        world.update(stack, template(a={}, b={"fail": True}), tags=tags, disable_rollback=False)
        assert world.stack(stack.id).tags == tuple(tags)
        assert world.settle(
            lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60
        )
        assert world.stack(stack.id).tags == ("old", "kept")


def test_a_change_without_an_answer_is_taken_back_where_it_is_cancelled_before_its_retry(
    world: World,
) -> None:
    stack = created(world, template(a={"value": "old"}))
    world.update(stack, template(a={"value": "new", "unanswered": True}))
    world.calm()
    row = rows(world, stack)["a"]
    assert (row.action, row.status, row.reason) == ("UPDATE", "IN_PROGRESS", "will be tried again: no answer")
    cancel(world, stack, rollback=True)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    physical_id = rows(world, stack)["a"].physical_id
    assert {name: item.value for name, item in world.cloud.objects.items()} == {physical_id: "old"}


@pytest.mark.parametrize("released", [False, True], ids=["at once", "after its release"])
@pytest.mark.parametrize("rollback", [False, True], ids=["update", "rollback"])
def test_a_change_whose_conductor_dies_is_taken_back_where_it_is_cancelled(
    world: World, rollback: bool, released: bool
) -> None:
    stack = created(world, template(a={"value": "old"}))
    world.update(stack, template(a={"value": "new"}))
    _change(world)
    world.kill("host0")
    if released:
        world.pass_time(TIMEOUT + 1)
        world.look_all()
        world.conductors["host1"].run_duties()
        world.bus.hints.clear()
    cancel(world, stack, rollback=rollback)
    assert world.settle(lambda: ended(world, stack), within=60)
    if not rollback:
        updated(world, stack, template(a={"value": "old"}))
    assert world.stack(stack.id).status == Status.COMPLETE
    assert [item.value for item in world.cloud.objects.values()] == ["old"]


def test_a_change_whose_conductor_loses_the_result_is_taken_back_where_it_is_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = created(world, template(a={"value": "old"}))
    world.update(stack, template(a={"value": "new"}))
    _change(world)
    conductor = world.conductors["host0"]
    with monkeypatch.context() as patch:
        patch.setattr(commit, "exchange", mock.Mock(side_effect=MemoryError))
        conductor.run_once()
    conductor.run_once()
    assert rows(world, stack)["a"].action == "UPDATE"
    cancel(world, stack, rollback=True)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert [item.value for item in world.cloud.objects.values()] == ["old"]


def _change(world: World) -> None:
    """Let a step of a conductor change the only thing, before that is stored."""
    conductor = world.conductors["host0"]
    for traversal, task_ids in world.bus.hints:
        conductor.loop.enqueue({traversal: task_ids})
    world.bus.hints.clear()
    conductor.run_once()
    conductor.run_step()
    assert [item.value for item in world.cloud.objects.values()] == ["new"]


def test_the_start_of_a_change_that_is_tried_again_is_shown_once(world: World) -> None:
    stack = created(world, template(a={"value": "old"}))
    updated(world, stack, template(a={"value": "new", "unanswered": True}))
    row = rows(world, stack)["a"]
    assert (row.status, row.reason) == ("COMPLETE", "state changed")
    recorded = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    of_update = [event for event, _ in recorded if (event.resource_name, event.action) == ("a", "UPDATE")]
    assert [(str(event.status), event.reason.partition(":")[0]) for event in of_update] == [
        ("IN_PROGRESS", "state changed"),
        ("IN_PROGRESS", "will be tried again"),
        ("COMPLETE", "state changed"),
    ]


def test_a_rollback_is_not_lost_with_the_conductor_that_saw_the_failure(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}), disable_rollback=False)
    world.calm()
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("ROLLBACK", Status.IN_PROGRESS), "failed it is never shown"
    assert "told to fail" in current.reason
    assert current.rollback_at is not None
    for host in list(world.conductors):
        world.kill(host)
    world.start("fresh")
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.cloud.objects == {}


def test_a_timeout_is_rolled_back_too(world: World) -> None:
    stack = world.create(
        "s", template(a={}, b={"endless": True, "after": 3}), disable_rollback=False, timeout_mins=1
    )
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=90)
    assert world.stack(stack.id).status == Status.COMPLETE
    assert world.cloud.objects == {}


def test_a_failure_stays_where_no_rollback_is_requested(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}))
    world.settle(lambda: False, within=20)
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("CREATE", Status.FAILED)
    assert len(world.cloud.objects) == 1


def test_cancelling_an_update_goes_back_at_once_although_a_step_never_ends(world: World) -> None:
    stack = created(world, template(a={"value": "old"}))
    before = rows(world, stack)
    world.update(stack, template(a={"value": "new"}, b={"endless": True, "after": 5}))
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=True)
    assert world.settle(lambda: ended(world, stack), within=20)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("ROLLBACK", Status.COMPLETE)
    after = rows(world, stack)
    assert set(after) == {"a"}
    assert after["a"].physical_id == before["a"].physical_id
    assert all_rows(world, stack) == len(world.cloud.objects) == 1


def test_cancelling_without_rollback_stops_all_and_the_next_update_continues(world: World) -> None:
    stack = world.create(
        "s", template(a={"endless": True, "after": 5}, b={"needs": on("a")}, c={}), disable_rollback=False
    )
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    current = world.stack(stack.id)
    assert (current.action, current.status, current.reason) == (
        "CREATE",
        Status.FAILED,
        "User cancelled operation",
    )
    world.settle(lambda: False, within=10)
    assert sum(c.loop.in_progress for c in world.awake()) == 0
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("CREATE", Status.FAILED)
    left = world.database.read(lambda conn: tasks.of_traversal(conn, stack.traversal))
    assert TaskState.RUNNING not in [task.state for task in left]
    updated(world, stack, template(a={}, b={"needs": on("a")}, c={}))
    assert len(world.cloud.objects) == 3


@pytest.mark.parametrize("rollback", [True, False])
def test_what_does_nothing_cannot_be_cancelled(world: World, rollback: bool) -> None:
    stack = created(world, template(a={}))
    with pytest.raises(NotUpdatable, match="Cancelling update when stack is CREATE_COMPLETE"):
        cancel_action(world.context, world.stack(stack.id), rollback=rollback)


def test_a_user_may_do_something_else_before_the_rollback_begins(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}), disable_rollback=False)
    world.calm()
    world.update(stack, template(a={}, b={}))
    assert world.settle(lambda: ended(world, stack), within=20)
    world.settle(lambda: False, within=10)
    current = world.stack(stack.id)
    assert (current.action, current.status) == ("UPDATE", Status.COMPLETE)


def test_all_that_failed_at_once_are_rolled_back_in_one_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollbacks, "PAGE", 2)
    stacks = [world.create(f"s{n}", template(a={"fail": True}), disable_rollback=False) for n in range(5)]
    world.calm()
    for conductor in world.awake():
        rollback = conductor.duties["Rollbacks"]
        rollback.run()
    assert {world.stack(stack.id).action for stack in stacks} == {"ROLLBACK"}


def test_a_stack_may_be_deleted_before_its_rollback_is_planned(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}), disable_rollback=False)
    world.calm()
    assert world.stack(stack.id).rollback_at is not None
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: world.stack(stack.id).deleted_at is not None, within=20)
    assert world.cloud.objects == {}


def test_a_rollback_that_is_not_planned_can_be_cancelled(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}), disable_rollback=False)
    world.calm()
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    world.settle(lambda: False, within=10)
    current = world.stack(stack.id)
    assert (current.action, current.status, current.rollback_at) == ("ROLLBACK", Status.FAILED, None)
    updated(world, stack, template(a={}, b={}))


def test_a_rollback_that_cannot_be_planned_fails_and_says_what_came_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Json) -> Json:
        raise NotUpdatable("its old goal is wrong today")

    monkeypatch.setattr(world, "roll_back", refuse)
    stack = world.create("s", template(a={}, b={"fail": True}), disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).status == Status.FAILED, within=20)
    current = world.stack(stack.id)
    assert (current.action, current.rollback_at) == ("ROLLBACK", None)
    assert "told to fail" in current.reason
    assert current.reason.endswith("it cannot be rolled back: its old goal is wrong today")
    assert [event[1:] for event in history(world, stack) if event[0] == "s"][-2:] == [
        ("ROLLBACK", "IN_PROGRESS"),
        ("ROLLBACK", "FAILED"),
    ]


def test_a_rollback_that_nobody_plans_ends_by_a_deadline_of_its_own(world: World) -> None:
    stack = world.create("s", template(a={"fail": True}), disable_rollback=False)
    world.calm()
    assert world.stack(stack.id).deadline_at == world.clock.now + endings.PLANNED_WITHIN


@pytest.mark.parametrize("how", ["step", "timeout"])
def test_nobody_who_polls_sees_a_failure_before_the_rollback(world: World, how: str) -> None:
    states: set[tuple[str, str]] = set()
    properties = {"fail": True} if how == "step" else {"endless": True, "after": 3}
    stack = world.create("s", template(a={}, b=properties), disable_rollback=False, timeout_mins=1)

    def look() -> None:
        current = world.stack(stack.id)
        states.add((current.action, current.status))

    world.database.observers.append(look)
    assert world.settle(
        lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=120
    )
    assert states == {
        ("CREATE", "IN_PROGRESS"),
        ("ROLLBACK", "IN_PROGRESS"),
        ("ROLLBACK", "COMPLETE"),
    }


def test_a_requirement_outlives_the_failure_of_what_needed_it(world: World) -> None:
    before = template(a={}, m={"value": "m", "needs": on("a")}, d={"value": "old", "needs": on("m")})
    stack = created(world, before)
    resource_rows = rows(world, stack)
    world.update(stack, template(d={"value": "new", "fail": True}), disable_rollback=False)
    assert world.settle(lambda: world.stack(stack.id).action == "ROLLBACK" and ended(world, stack), within=60)
    assert world.stack(stack.id).status == Status.COMPLETE, world.stack(stack.id).reason
    after = rows(world, stack)
    assert set(after) == {"a", "m", "d"}
    assert all(after[name].physical_id == resource_rows[name].physical_id for name in ("a", "m"))
