"""Work that has begun and waits continues under a newer goal that still wants it."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import ended, history, rows
from simulation.restrictions import server, template
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status, TaskState
from stoker.db.work import tasks
from stoker.engine.planning.requests import CreateRequest, Goal, UpdateRequest
from stoker.engine.signals import send_signal
from stoker.engine.stacks import create_stack, delete_stack
from stoker.engine.updates import cancel_action, update_stack

Json = typing.Any


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def waiting(count: int = 1, **more: Json) -> Json:
    properties = {"handle": {"get_resource": "handle"}, "timeout": 250, "count": count}
    return template(
        handle={"type": "OS::Heat::WaitConditionHandle"},
        wait={"type": "OS::Heat::WaitCondition", "properties": properties},
        **more,
    )


def signal(world: World, stack: Stack, number: int = 1) -> None:
    details = {"id": str(number), "status": "SUCCESS"}
    send_signal(world.context, world.stack(stack.id), "handle", details)


def parked(world: World, stack: Stack) -> list[str]:
    traversal = world.stack(stack.id).traversal
    stored_tasks = world.database.read(lambda conn: tasks.of_traversal(conn, traversal))
    return [task.kind.value for task in stored_tasks if task.state == TaskState.PARKED]


def complete(world: World, stack: Stack) -> bool:
    assert world.settle(lambda: ended(world, stack), within=60), history(world, stack)
    assert world.cloud.wrong == []
    return world.stack(stack.id).status == Status.COMPLETE


def test_a_parked_creation_continues_under_a_goal_that_repeats_it(world: World) -> None:
    stack = world.create("s", waiting())
    world.calm()
    before = rows(world, stack)["wait"]
    for number in range(3):
        world.update(stack, waiting(**{f"n{number}": server()}))
        world.calm()
        assert parked(world, stack) == ["create"]
    signal(world, stack)
    assert complete(world, stack)
    after = rows(world, stack)
    assert set(after) == {"handle", "wait", "n2"}
    assert (after["wait"].id, after["wait"].action) == (before.id, "CREATE")
    changes = [(action, status) for name, action, status in history(world, stack) if name == "wait"]
    assert changes == [("CREATE", "IN_PROGRESS"), ("CREATE", "COMPLETE")]


def test_the_time_of_what_continues_is_not_restarted_by_the_newer_goal(world: World) -> None:
    limit = {"resource_registry": {"resources": {"wait": {"timeout": 20, "retries": 0}}}}
    stack = world.create("s", waiting(), environment=limit)
    world.calm()
    before = rows(world, stack)["wait"].id
    world.pass_time(10)
    world.update(stack, waiting(new=server()), environment=limit)
    world.calm()
    assert parked(world, stack) == ["create"]
    assert world.settle(lambda: rows(world, stack)["wait"].id != before, within=60)
    assert world.clock.now - stack.created_at == 20, "it is replaced, as everything that failed is"
    signal(world, stack)
    assert complete(world, stack)
    assert world.clock.now - stack.created_at < 30


def test_it_may_be_parked_again(world: World) -> None:
    stack = world.create("s", waiting(count=3))
    world.calm()
    before = rows(world, stack)["wait"].id
    signal(world, stack, 1)
    world.update(stack, waiting(count=3, new=server()))
    world.calm()
    signal(world, stack, 2)
    world.calm()
    assert parked(world, stack) == ["create"]
    signal(world, stack, 3)
    assert complete(world, stack)
    assert rows(world, stack)["wait"].id == before


def test_a_step_that_runs_meanwhile_may_be_parked_afterwards(world: World) -> None:
    stack = world.create("s", waiting())
    world.look_all()
    while rows(world, stack)["wait"].action == "INIT":
        for conductor in world.awake():
            while conductor.steps:
                conductor.run_step()
            conductor.run_once()
        while world.bus.hints:
            world.deliver(0, "host0")
    assert any(conductor.steps for conductor in world.awake()), "its first step is about to run"
    world.update(stack, waiting(b=server()))
    row = rows(world, stack)["wait"].id
    world.calm()
    assert parked(world, stack) == ["create"]
    signal(world, stack)
    assert complete(world, stack)
    after = rows(world, stack)["wait"]
    assert (after.id, after.action) == (row, "CREATE")
    assert ("wait", "CREATE", "FAILED") not in history(world, stack)


def test_what_continues_keeps_to_what_it_was_given_and_is_updated_afterwards(world: World) -> None:
    def template_for(size: int) -> Json:
        slow = server(needs=[{"get_resource": "a"}], after=5, looks=2)
        return template(a=server(size=size), b=slow)

    stack = world.create("s", template_for(1))
    world.calm()
    before = rows(world, stack)
    world.update(stack, template_for(2))
    world.bus.cancels.clear()
    world.kill("host0")
    world.kill("host1")
    world.start("host2")
    assert complete(world, stack)
    after = rows(world, stack)
    assert after["a"].physical_id != before["a"].physical_id
    assert (after["b"].id, after["b"].physical_id) == (before["b"].id, before["b"].physical_id)
    assert world.cloud.objects[str(after["b"].physical_id)].needs == (after["a"].physical_id,)


def test_a_goal_that_changes_it_does_not_wait_for_it(world: World) -> None:
    stack = world.create("s", waiting(count=2))
    world.calm()
    before = rows(world, stack)["wait"].id
    signal(world, stack)
    world.update(stack, waiting(count=1))
    assert complete(world, stack)
    assert rows(world, stack)["wait"].id != before


@pytest.mark.parametrize("how", ["delete", "time", "cancel", "failure"])
def test_what_continued_ends_with_the_goal_it_continued_for(world: World, how: str) -> None:
    stack = world.create("s", waiting())
    world.calm()
    world.update(stack, waiting(new=server(fail=how == "failure", after=1)))
    world.calm_once()
    if how == "delete":
        delete_stack(world.context, world.stack(stack.id))
    elif how == "cancel":
        cancel_action(world.context, world.stack(stack.id), rollback=False)
    assert world.settle(lambda: ended(world, stack), within=320)
    current = world.stack(stack.id)
    if how == "delete":
        assert (current.action, current.status) == ("DELETE", Status.COMPLETE)
        return
    assert (current.action, current.status) == ("UPDATE", Status.FAILED)
    assert parked(world, stack) == []
    assert rows(world, stack)["wait"].status == Status.FAILED
    world.update(stack, waiting())
    world.calm()
    signal(world, stack)
    assert complete(world, stack)


def test_a_failure_beside_it_waits_for_what_still_runs(world: World) -> None:
    stack = world.create("s", waiting())
    world.calm()
    world.update(stack, waiting(bad=server(fail=True), slow=server(after=5, looks=3)))
    world.calm()
    assert rows(world, stack)["bad"].status == Status.FAILED
    assert not ended(world, stack)
    assert world.settle(lambda: ended(world, stack), within=60)
    assert rows(world, stack)["slow"].status == Status.COMPLETE


def test_a_nested_stack_continues_under_a_goal_that_repeats_it(world: World) -> None:
    child = json.dumps(template(slow=server(after=8, looks=3)))

    def goal(**more: Json) -> Goal:
        return Goal(template(child={"type": "child.yaml"}, **more), files={"child.yaml": child})

    stack = create_stack(world.context, CreateRequest("tenant", "s", goal()))
    world.calm()
    before = rows(world, stack)["child"]
    assert parked(world, stack) == ["create"]
    update_stack(world.context, world.stack(stack.id), UpdateRequest(goal(new=server())))
    world.calm()
    assert parked(world, stack) == ["create"]
    assert complete(world, stack)
    after = rows(world, stack)["child"]
    assert (after.id, after.physical_id) == (before.id, before.physical_id)
    assert len(world.cloud.objects) == 2
