"""Stack timeouts, on the real database code and a fake clock."""

import dataclasses
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.world import SimConductor, World
from stoker.conductor.duties.stack_timeouts import StackTimeouts
from stoker.db import events
from stoker.db.events import EventQuery
from stoker.db.ids import ResourceId, StackId, TaskId, WaitsOn
from stoker.db.rows import Stack, Task
from stoker.db.schema import tables
from stoker.db.stacks import DueStack
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.work import tasks
from stoker.engine import cancel
from stoker.engine.stacks import delete_stack

Json = typing.Any
DAY = 86400.0


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2)


def template(count: int, **properties: Json) -> Json:
    resources = {f"r{i}": {"type": "Sim::Server", "properties": properties} for i in range(count)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def timeouts(world: World, conductor: SimConductor) -> StackTimeouts:
    return StackTimeouts(dataclasses.replace(conductor.duty_context(cancel_grace=30.0), clock=world.clock))


def time_out_all(world: World) -> None:
    for conductor in world.awake():
        timeouts(world, conductor).run()


def own_events(world: World, stack: Stack) -> list[tuple[str, str | None]]:
    query = EventQuery(stack.id, resource_name=stack.name)
    entries = world.database.read(lambda conn: events.list_events(conn, query))
    return [(event.status, event.conductor) for event, _ in entries]


def test_many_stacks_due_at_once_end_once_each_by_their_owner(world: World) -> None:
    stacks = [world.create(f"s{i}", template(1, endless=True)) for i in range(90)]
    world.pass_time(299)
    time_out_all(world)
    assert {world.stack(stack.id).status for stack in stacks} == {Status.IN_PROGRESS}, "none early"
    world.pass_time(2)
    world.look_all()
    time_out_all(world)
    time_out_all(world)
    for stack in stacks:
        [owner] = [c.host for c in world.awake() if c.ring.owns(stack.shard)]
        assert own_events(world, stack) == [("IN_PROGRESS", None), ("FAILED", owner)]


def test_what_its_owner_leaves_undone_is_ended_by_the_deputy_after_half_a_second(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = world.create("s", template(1, endless=True))
    [other] = [conductor for conductor in world.awake() if not conductor.ring.owns(stack.shard)]
    calls = []
    answers = [False, True]

    def is_deputy(shard: int) -> bool:
        calls.append(shard)
        return answers.pop(0)

    monkeypatch.setattr(other.ring, "is_deputy", is_deputy)
    duty = timeouts(world, other)
    world.pass_time(300.25)
    world.look_all()
    duty.run()
    assert calls == []
    world.pass_time(0.25)
    duty.run()
    assert world.stack(stack.id).status == Status.IN_PROGRESS, "no deputy, no owner"
    duty.run()
    assert calls == [stack.shard, stack.shard]
    assert own_events(world, stack)[-1] == ("FAILED", other.host)


def test_only_a_traversal_of_which_something_runs_gets_a_hint_to_stop(world: World) -> None:
    busy = world.create("busy", template(1, endless=True))
    world.calm()
    world.create("idle", template(1, endless=True))
    world.bus.hints.clear()
    world.pass_time(301)
    world.look_all()
    time_out_all(world)
    cancels = sorted(world.bus.cancels)
    assert cancels == [("host0", busy.traversal, ()), ("host1", busy.traversal, ())]


def test_a_stack_that_continued_to_something_else_does_not_time_out_with_the_others(world: World) -> None:
    late, gone_on = (world.create(name, template(1, endless=True)) for name in "ab")
    world.calm()
    due = [DueStack(stack.id, stack.shard, stack.traversal, 0.0) for stack in (late, gone_on)]
    delete_stack(world.context, gone_on)
    world.pass_time(301)
    ended = world.database.write(
        lambda conn: cancel.time_out_all(conn, due, by="host0", now=world.clock.now, grace=30.0)
    )
    assert ended.stacks == [late.id]
    assert (world.stack(gone_on.id).action, world.stack(gone_on.id).status) == ("DELETE", "IN_PROGRESS")


def wait_for_end(world: World, child: StackId, parent: Stack) -> TaskId:
    """A task of the parent's that is parked until the child ends."""
    task = Task(
        id=TaskId(900_001),
        traversal=parent.traversal,
        stack_id=parent.id,
        resource_id=ResourceId(900_001),
        kind=TaskKind.CREATE,
        state=TaskState.PARKED,
        pending=0,
        shard=parent.shard,
        waits_on=WaitsOn.stack(StackId(str(child))),
    )

    def store(conn: sa.Connection) -> None:
        # Tasks wait for nested stacks only.
        nested = sa.update(tables.stack).where(tables.stack.c.id == child).values(parent_id=parent.id)
        conn.execute(nested)
        tasks.insert_many(conn, [task])

    world.database.write(store)
    return task.id


def test_a_childs_timeout_announces_the_parents_task_that_it_wakes(world: World) -> None:
    parent = world.create("parent", template(1, endless=True), timeout_mins=60)
    child = world.create("child", template(1, endless=True))
    waiting = wait_for_end(world, child.id, parent)
    world.bus.hints.clear()
    world.database.write(
        lambda conn: conn.execute(
            sa.update(tables.stack).where(tables.stack.c.id == parent.id).values(deadline_at=1e12)
        )
    )
    world.pass_time(301)
    world.look_all()
    time_out_all(world)
    assert world.stack(child.id).status == Status.FAILED
    assert world.bus.hints == [(parent.traversal, (waiting,))]


def test_the_end_of_an_empty_child_announces_the_parents_task_that_it_wakes(world: World) -> None:
    parent = world.create("parent", template(1, endless=True))
    child = world.create("child", template(0))
    waiting = wait_for_end(world, child.id, parent)
    world.bus.hints.clear()
    delete_stack(world.context, child)
    assert world.stack(child.id).deleted_at is not None
    assert [ids for _, ids in world.bus.hints] == [(waiting,)]
