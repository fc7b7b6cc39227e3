"""Check, suspend, resume: one action on every resource of a stack."""

import pathlib

import pytest
from simulation.cloud import CloudObject
from simulation.helpers import created, ended, history, on, rows, template, updated
from simulation.world import World
from stoker.db import events, resources
from stoker.db.events import EventQuery
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskKind
from stoker.engine.errors import NotUpdatable
from stoker.engine.stacks import act_on_stack, delete_stack
from stoker.engine.updates import cancel_action


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def act(world: World, stack: Stack, kind: TaskKind) -> Stack:
    act_on_stack(world.context, world.stack(stack.id), kind)
    assert world.settle(lambda: ended(world, stack), within=60)
    return world.stack(stack.id)


def test_a_suspension_goes_against_the_order_and_a_resumption_with_it(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}, c={"needs": on("b")}))
    count = len(history(world, stack))
    result = act(world, stack, TaskKind.SUSPEND)
    assert (result.action, result.status) == ("SUSPEND", Status.COMPLETE)
    began = [name for name, _, status in history(world, stack, count) if status == "IN_PROGRESS"]
    assert began == ["s", "c", "b", "a"]
    assert {(row.action, row.status) for row in rows(world, stack).values()} == {("SUSPEND", "COMPLETE")}
    with pytest.raises(NotUpdatable, match="Updating a stack when it is suspended is not supported"):
        world.update(stack, template(a={}))
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    assert world.stack(stack.id) == result, "it is suspended already"
    count = len(history(world, stack))
    result = act(world, stack, TaskKind.RESUME)
    assert (result.action, result.status) == ("RESUME", Status.COMPLETE)
    began = [name for name, _, status in history(world, stack, count) if status == "IN_PROGRESS"]
    assert began == ["s", "a", "b", "c"]
    updated(world, stack, template(a={"value": "x"}))
    assert len(world.cloud.objects) == 1


def test_a_check_finds_all_that_is_wrong_and_the_next_update_heals_it(world: World) -> None:
    document = template(a={}, b={"needs": on("a")}, c={}, d={"needs": on("c")})
    stack = created(world, document)
    before = rows(world, stack)
    for name in ("a", "c"):
        del world.cloud.objects[str(before[name].physical_id)]
    result = act(world, stack, TaskKind.CHECK)
    assert (result.action, result.status) == ("CHECK", Status.FAILED)
    states = {name: row.status for name, row in rows(world, stack).items()}
    assert states == {"a": "FAILED", "b": "COMPLETE", "c": "FAILED", "d": "COMPLETE"}
    updated(world, stack, document)
    after = rows(world, stack)
    assert {row.physical_id for row in after.values()} == set(world.cloud.objects)
    assert after["b"].physical_id == before["b"].physical_id
    assert act(world, stack, TaskKind.CHECK).status == Status.COMPLETE


def test_what_was_never_made_is_left_for_an_update(world: World) -> None:
    stack = world.create("s", template(a={}, b={"fail": True}))
    assert world.settle(lambda: ended(world, stack), within=60)
    result = act(world, stack, TaskKind.CHECK)
    assert (result.status, result.reason) == (
        Status.FAILED,
        "Resource CHECK failed: ResourceFailure: resources.b: the resource does not exist",
    )
    states = {name: (row.action, row.status) for name, row in rows(world, stack).items()}
    assert states == {"a": ("CHECK", "COMPLETE"), "b": ("CHECK", "FAILED")}
    assert rows(world, stack)["b"].reason.startswith("Can not check b, its creation failed: ")
    assert ("b", "CHECK", "FAILED") in history(world, stack)
    assert act(world, stack, TaskKind.CHECK).status == Status.FAILED
    updated(world, stack, template(a={}, b={}))
    assert act(world, stack, TaskKind.CHECK).status == Status.COMPLETE
    assert len(world.cloud.objects) == 2


@pytest.mark.parametrize("ends", ["update", "delete"])
def test_a_check_hides_no_thing_that_a_failed_creation_has_left(world: World, ends: str) -> None:
    """Nothing of it is stored but the key, by which it is found in the cloud."""
    stack = world.create("s", template(b={"fail": True}))
    assert world.settle(lambda: ended(world, stack), within=60)
    row = rows(world, stack)["b"]
    assert (row.properties, row.physical_id) == (None, None)
    world.cloud.physical_ids[str(row.key)] = "lost"
    world.cloud.objects["lost"] = CloudObject(stack.id, "b", str(row.key), (), "")
    act(world, stack, TaskKind.CHECK)
    if ends == "update":
        updated(world, stack, template(b={}))
        assert "lost" not in world.cloud.objects
    else:
        delete_stack(world.context, world.stack(stack.id))
        assert world.settle(lambda: ended(world, stack), within=60)
        assert world.cloud.objects == {}


def test_a_check_marks_what_was_never_begun_and_the_next_update_makes_it(world: World) -> None:
    document = template(a={"fail": True}, b={"needs": on("slow")}, slow={"after": 5}, d={"needs": on("a")})
    stack = world.create("s", document)
    assert world.settle(lambda: ended(world, stack), within=60)
    unmade = rows(world, stack)["b"].id
    for _ in range(2):
        act(world, stack, TaskKind.CHECK)
        row = rows(world, stack)["b"]
        assert (row.id, row.action, row.status) == (unmade, "CHECK", "FAILED")
        assert row.reason == "Can not check b, resource not created yet."
        waiting = rows(world, stack)["d"]
        assert (waiting.action, waiting.status) == ("INIT", "COMPLETE"), "what it needs is missing"
    assert ("b", "CHECK", "FAILED") in history(world, stack)
    updated(world, stack, template(a={}, b={"needs": on("slow")}, slow={"after": 5}, d={"needs": on("a")}))
    assert act(world, stack, TaskKind.CHECK).status == Status.COMPLETE
    assert len(world.cloud.objects) == 4
    assert unmade not in {row.id for row in rows(world, stack).values()}


def test_a_check_names_what_is_missing_and_not_what_waits_for_it(world: World) -> None:
    stack = world.create("s", template(b={"fail": True}, a={"needs": on("b")}))
    assert world.settle(lambda: ended(world, stack), within=60)
    result = act(world, stack, TaskKind.CHECK)
    assert result.reason == "Resource CHECK failed: ResourceFailure: resources.b: the resource does not exist"


def test_a_check_that_has_failed_retries_the_checks_of_the_others(world: World) -> None:
    stack = world.create("s", template(a={"stumbles": True}, b={"fail": True, "needs": on("a")}))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert act(world, stack, TaskKind.CHECK).status == Status.FAILED
    checked = rows(world, stack)["a"]
    assert (checked.action, checked.status) == ("CHECK", "COMPLETE")


def test_a_check_of_a_stack_in_which_nothing_was_made_fails_at_once(world: World) -> None:
    stack = world.create("s", template(b={"fail": True}))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert act(world, stack, TaskKind.CHECK).status == Status.FAILED


@pytest.mark.parametrize("kind", [TaskKind.CHECK, TaskKind.SUSPEND, TaskKind.RESUME])
def test_no_action_begins_while_another_is_in_progress(world: World, kind: TaskKind) -> None:
    stack = world.create("s", template(a={"after": 10}))
    with pytest.raises(NotUpdatable, match="CREATE_IN_PROGRESS is not supported"):
        act_on_stack(world.context, world.stack(stack.id), kind)


def test_a_stack_can_be_deleted_while_it_is_being_suspended(world: World) -> None:
    stack = created(world, template(a={}, b={"needs": on("a")}))
    act_on_stack(world.context, world.stack(stack.id), TaskKind.SUSPEND)
    delete_stack(world.context, world.stack(stack.id))
    assert world.settle(lambda: ended(world, stack), within=60)
    assert world.stack(stack.id).action == "DELETE"
    assert world.cloud.objects == {}


def test_an_action_waits_for_a_step_that_still_runs_from_before(world: World) -> None:
    stack = created(world, template(a={"value": "1"}))
    world.update(stack, template(a={"value": "2"}))
    world.deliver(0, "host0")
    world.conductors["host0"].run_once()
    assert len(world.conductors["host0"].steps) == 1, "the update's step has not run yet"
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    while world.bus.hints:
        world.deliver(0, "host1")
    world.conductors["host1"].run_once()
    assert world.conductors["host1"].steps == [], "nothing is begun on the resource beside it"
    assert world.settle(lambda: ended(world, stack), within=60)
    assert (world.stack(stack.id).action, world.stack(stack.id).status) == ("CHECK", Status.COMPLETE)


def test_a_type_that_cannot_check_says_so(world: World) -> None:
    stack = created(world, {**template(), "resources": {"n": {"type": "OS::Heat::None"}}})
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    assert world.settle(lambda: world.stack(stack.id).status != Status.IN_PROGRESS, within=20)
    resource_rows = world.database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert [(row.action, row.status, row.reason) for row in resource_rows] == [
        ("CHECK", Status.COMPLETE, "CHECK not supported for OS::Heat::None")
    ]
    listed = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    reasons = [event.reason for event, _ in listed if event.resource_name == "n" and event.action == "CHECK"]
    assert reasons == ["state changed", "CHECK not supported for OS::Heat::None"]
