"""The purge of what is old, on the real database code and a fake clock."""

import dataclasses
import pathlib
import typing
import uuid
from dataclasses import replace

import pytest
import sqlalchemy as sa
from simulation.world import SHARDS, World
from stoker.conductor.duties.stack_purge import StackPurge
from stoker.db import content, events, stacks
from stoker.db.events import EventQuery
from stoker.db.ids import ContentId, StackId, TraversalId
from stoker.db.rows import Event, Stack
from stoker.db.schema import tables
from stoker.db.states import Status

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
    settings = {"keep_deleted": DAY, "keep_events": 0, **options}
    return [
        StackPurge(dataclasses.replace(conductor.duty_context(**settings), clock=world.clock))
        for conductor in world.awake()
    ]


def contents(world: World) -> set[str]:
    return set(world.database.read(lambda conn: list(conn.execute(sa.select(tables.content.c.id)).scalars())))


def put_unused(world: World, count: int) -> None:
    """Contents that nobody uses, and that have been there for long."""
    long_ago = world.clock.now - content.KEEP_UNUSED - 1
    world.database.write(lambda conn: [content.put(conn, {"n": n}, long_ago) for n in range(count)])


def test_contents_that_no_stack_uses_are_swept_part_by_part(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stoker.conductor.duties.stack_purge.PAGE", 5)
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
    entries = [
        Event(
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
    world.database.write(lambda conn: events.add_many(conn, entries))
    return [event.uuid for event in entries]


def stored(world: World, stack: Stack) -> list[str]:
    entries = world.database.read(lambda conn: events.list_events(conn, EventQuery(stack.id)))
    return [event.uuid for event, _ in entries]


def test_of_each_stacks_events_the_newest_are_kept(world: World) -> None:
    many = world.create("many", template(1))
    few = world.create("few", template(1))
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
    monkeypatch.setattr("stoker.conductor.duties.stack_purge.PAGE", 30)
    created = world.create("first", template(0))
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
            created,
            id=StackId(str(uuid.uuid4())),
            traversal=TraversalId(str(uuid.uuid4())),
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


def deleted(world: World) -> list[stacks.DeletedStack]:
    return world.database.read(lambda conn: stacks.deleted_before(conn, 1e12, limit=1000))
