"""The duties over stacks, on the real database code and a fake clock."""

import pathlib
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from simulation.world import SHARDS, SimConductor, World
from stoker.conductor.duties.stacks import StackPurge, StackTimeouts
from stoker.db import content, events, stacks, tables, tasks
from stoker.db.events import EventQuery
from stoker.db.ids import ContentId, StackId, TaskId
from stoker.db.stacks import DueStack, Stack
from stoker.db.states import Status, TaskKind, TaskState
from stoker.db.tasks import Task
from stoker.traversal import ending
from stoker.traversal.start import new_traversal

Json = typing.Any
DAY = 86400.0


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2)


def template(count: int, **properties: Json) -> Json:
    resources = {f"r{i}": {"type": "Sim::Server", "properties": properties} for i in range(count)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def purge_all(world: World, **options: typing.Any) -> None:
    """One round of every conductor's purge."""
    for duty in purges(world, **options):
        duty.run()


def purges(world: World, **options: typing.Any) -> list[StackPurge]:
    given = {"keep": DAY, "keep_events": 0, **options}
    return [
        StackPurge(database=world.database, ring=conductor.ring, clock=world.clock, **given)
        for conductor in world.awake()
    ]


def timeouts(world: World, conductor: SimConductor, **options: typing.Any) -> StackTimeouts:
    return StackTimeouts(
        database=world.database,
        ring=conductor.ring,
        hints=world.bus,
        clock=world.clock,
        host=conductor.host,
        **options,
    )


def time_out_all(world: World) -> None:
    for conductor in world.awake():
        timeouts(world, conductor).run()


def own_events(world: World, stack: Stack) -> list[tuple[str, str | None]]:
    query = EventQuery(stack.id, resource_name=stack.name)
    found = world.database.read(lambda conn: events.list_events(conn, query))
    return [(event.status, event.conductor) for event, _ in found]


def test_many_stacks_due_at_once_end_once_each_by_their_owner(world: World) -> None:
    made = [world.create(f"s{i}", template(1, endless=True)) for i in range(90)]
    world.pass_time(299)
    time_out_all(world)
    assert {world.stack(stack.id).status for stack in made} == {Status.IN_PROGRESS}, "none early"
    world.pass_time(2)
    world.look_all()
    time_out_all(world)
    time_out_all(world)
    for stack in made:
        [owner] = [c.host for c in world.awake() if c.ring.owns(stack.shard)]
        assert own_events(world, stack) == [("IN_PROGRESS", None), ("FAILED", owner)]


def test_what_its_owner_leaves_undone_is_ended_by_the_deputy_after_half_a_second(world: World) -> None:
    stack = world.create("s", template(1, endless=True))
    [other] = [conductor for conductor in world.awake() if not conductor.ring.owns(stack.shard)]
    asked: list[int] = []

    def is_deputy(shard: int) -> bool:
        asked.append(shard)
        return True

    duty = timeouts(world, other, is_deputy=is_deputy)
    world.pass_time(300.25)
    world.look_all()
    duty.run()
    assert asked == []
    world.pass_time(0.25)
    timeouts(world, other).run()
    assert world.stack(stack.id).status == Status.IN_PROGRESS, "no deputy, no owner"
    duty.run()
    assert asked == [stack.shard]
    assert own_events(world, stack)[-1] == ("FAILED", other.host)


def test_only_a_traversal_of_which_something_runs_is_told_to_stop(world: World) -> None:
    busy = world.create("busy", template(1, endless=True))
    world.calm()
    world.create("idle", template(1, endless=True))
    world.bus.hints.clear()
    world.pass_time(301)
    world.look_all()
    time_out_all(world)
    told = sorted(world.bus.cancels)
    assert told == [("host0", busy.traversal, ()), ("host1", busy.traversal, ())]


def test_a_stack_that_went_on_to_something_else_does_not_time_out_with_the_others(world: World) -> None:
    late, gone_on = (world.create(name, template(1, endless=True)) for name in "ab")
    world.calm()
    seen = [DueStack(stack.id, stack.shard, stack.traversal, 0.0) for stack in (late, gone_on)]
    world.orders.delete(gone_on)
    world.pass_time(301)
    ended = world.database.write(
        lambda conn: ending.time_out_all(conn, seen, by="host0", now=world.clock.now)
    )
    assert ended.stacks == [late.id]
    assert (world.stack(gone_on.id).action, world.stack(gone_on.id).status) == ("DELETE", "IN_PROGRESS")


def wait_for_end(world: World, child: StackId, parent: Stack) -> TaskId:
    """A task of the parent's that is parked until the child ends."""
    task = Task(
        id=TaskId(900_001),
        traversal=parent.traversal,
        stack_id=parent.id,
        resource_id=None,
        kind=TaskKind.CREATE,
        state=TaskState.PARKED,
        pending=0,
        shard=parent.shard,
        waits_on=f"stack:{child}",
    )
    world.database.write(lambda conn: tasks.insert_many(conn, [task]))
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
    world.orders.delete(child)
    assert world.stack(child.id).deleted_at is not None
    assert [ids for _, ids in world.bus.hints] == [(waiting,)]


def contents(world: World) -> set[str]:
    return set(world.database.read(lambda conn: list(conn.execute(sa.select(tables.content.c.id)).scalars())))


def put_unused(world: World, count: int) -> None:
    """Contents that nobody uses, and that have been there for long."""
    long_ago = world.clock.now - content.KEEP_UNUSED - 1
    world.database.write(lambda conn: [content.put(conn, {"n": n}, long_ago) for n in range(count)])


def test_contents_that_no_stack_uses_are_swept_part_by_part(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.conductor.duties.stacks.PAGE", 5)
    for number in range(12):
        world.create(f"user{number}", template(1, value=str(number)))
    world.pass_time(content.KEEP_UNUSED + 1)
    world.look_all()
    used = contents(world)
    put_unused(world, 30)
    duties = purges(world)
    for _ in range(len(contents(world)) // 5 + 1):
        for duty in duties:
            duty.run()
    assert contents(world) == used


def test_contents_put_a_moment_ago_are_not_swept(world: World) -> None:
    world.database.write(lambda conn: content.put(conn, {"n": 1}, world.clock.now))
    purge_all(world)
    assert len(contents(world)) == 1


def test_only_one_conductor_sweeps_the_contents(world: World) -> None:
    for duty, conductor in zip(purges(world), world.awake(), strict=True):
        put_unused(world, 1)
        duty.run()
        assert (not contents(world)) == conductor.ring.owns(0)


def add_events(world: World, stack: Stack, count: int) -> list[str]:
    """Uuids in the order of the events."""
    made = [
        events.new(
            stack_id=stack.id,
            resource_name=f"e{number}",
            resource_type="t",
            physical_id=None,
            action="CHECK",
            status="COMPLETE",
            reason="",
            at=world.clock.now,
        )
        for number in range(count)
    ]
    world.database.write(lambda conn: events.add_many(conn, made))
    return [event.uuid for event in made]


def stored(world: World, stack: Stack) -> list[str]:
    found = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [event.uuid for event, _ in found]


def test_of_each_stacks_events_the_newest_are_kept(world: World) -> None:
    many, few = world.create("many", template(1)), world.create("few", template(1))
    newest = add_events(world, many, 30)[-20:]
    before = stored(world, few)
    purge_all(world, keep_events=20)
    assert stored(world, many) == newest
    assert stored(world, few) == before
    add_events(world, few, 20 - len(before))
    purge_all(world, keep_events=20)
    assert len(stored(world, few)) == 20


def test_0_keeps_all_events(world: World) -> None:
    stack = world.create("many", template(1))
    add_events(world, stack, 2000)
    purge_all(world, keep_events=0)
    assert len(stored(world, stack)) > 2000


def test_stacks_to_which_nothing_happened_lately_cost_no_look(world: World) -> None:
    stack = world.create("old", template(1))
    add_events(world, stack, 30)
    world.pass_time(3 * StackPurge.interval)
    world.look_all()
    purge_all(world, keep_events=20)
    assert len(stored(world, stack)) > 30
    add_events(world, stack, 1)
    purge_all(world, keep_events=20)
    assert len(stored(world, stack)) == 20


def test_all_stacks_deleted_long_ago_go_in_a_few_rounds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.conductor.duties.stacks.PAGE", 30)
    made = world.create("first", template(0))
    row = {
        "live_name": None,
        "action": "DELETE",
        "status": Status.COMPLETE,
        "deleted_at": world.clock.now,
        "template_id": ContentId("t"),
        "environment_id": ContentId("t"),
        "files_id": ContentId("t"),
    }
    copies = [
        replace(
            made,
            id=StackId(new_traversal()),
            traversal=new_traversal(),
            shard=number % SHARDS,
            name=f"s{number}",
            **row,
        )
        for number in range(200)
    ]
    world.database.write(lambda conn: [stacks.insert(conn, stack) for stack in copies])
    purge_all(world)
    assert len(deleted(world)) == 200, "they are kept for a day"
    world.pass_time(DAY + 1)
    world.look_all()
    for _ in range(4):
        purge_all(world)
    assert deleted(world) == []


def deleted(world: World) -> list[tuple[StackId, int]]:
    return world.database.read(lambda conn: stacks.deleted_before(conn, 1e12, limit=1000))
