"""Things of the cloud of which no row knows, as those made after a backup that was restored."""

import contextlib
import pathlib
import sqlite3
import typing
import uuid

import pytest
import sqlalchemy as sa
from simulation.helpers import created, ended, rows, template, updated
from simulation.world import World
from stoker.db.engine import Database
from stoker.db.rows import Resource, Stack
from stoker.db.schema import tables
from stoker.db.stacks import purge
from stoker.features.drift import marked_things
from stoker.features.drift.context import DriftServices
from stoker.features.drift.marked_things import MarkedThing, StackBusy
from stoker.features.drift.unknown import Comparison, UnknownThings, UnreadList
from stoker.resources.contract.context import Collection
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.openstack.marks import TagMark, mark_of
from stoker.resources.registry import ResourceRegistry

Json = typing.Any
TYPE = "OS::Sim::Listed"
FOREIGN = "made-by-hand"


def registry(world: World, *, is_of_project: bool = True) -> ResourceRegistry:
    """Types of a service that lists the things of the world's cloud with their marks, and one of others."""

    def read(context: object, project_id: str) -> dict[str, Json]:
        world.cloud.listed()  # Raises what it is to raise.
        remotes = {
            physical_id: {"name": physical_id, "tags": [mark_of(key)]}
            for key, physical_id in world.cloud.physical_ids.items()
            if physical_id in world.cloud.objects
        }
        return {**remotes, FOREIGN: {"tags": ["stoker-of-mine"]}}

    class Listed(ResourceType):
        def collection(self) -> Collection | None:
            return Collection("compute", "/servers", read, is_of_project=is_of_project)

        def key_on(self, remote: typing.Mapping[str, Json]) -> str | None:
            return TagMark().key_on(remote)

    return ResourceRegistry({TYPE: Listed, "Alias::Of::It": Listed})


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def copied(tmp_path: pathlib.Path) -> Database:
    """A backup of the world's database."""
    with (
        contextlib.closing(sqlite3.connect(tmp_path / "sim.sqlite")) as source,
        contextlib.closing(sqlite3.connect(tmp_path / "backup.sqlite")) as target,
    ):
        source.backup(target)
    return Database(f"sqlite:///{tmp_path / 'backup.sqlite'}")


def compared(world: World, stack: Stack, database: Database, *, is_of_project: bool = True) -> Comparison:
    services = DriftServices(
        database=database,
        registry=registry(world, is_of_project=is_of_project),
        sealer=world.sealer,
        clock=lambda: world.clock(),
        session=world.context.delegations.session,
        host="",
    )
    return UnknownThings(services).of_project(stack.project_id)


def test_what_was_made_after_the_backup_is_unknown_and_nothing_else(
    world: World, tmp_path: pathlib.Path
) -> None:
    stack = created(world, template(a={}, b={}))
    assert compared(world, stack, world.database) == Comparison([], [], [])
    backup = copied(tmp_path)
    updated(world, stack, template(a={}, b={"size": 2}, c={}))
    later = world.create("later", template(d={}))
    assert world.settle(lambda: ended(world, later), within=60)
    assert compared(world, stack, world.database) == Comparison([], [], [])
    new_ids = {rows(world, stack)[name].physical_id for name in ("b", "c")}
    new_ids.add(rows(world, later)["d"].physical_id)
    comparison = compared(world, stack, backup)
    assert {thing.physical_id for thing in comparison.things} == new_ids
    assert {thing.type for thing in comparison.things} == {TYPE}
    assert not comparison.unread


def test_a_thing_of_no_project_is_never_unknown_but_found_by_the_key_of_its_resource(
    world: World, tmp_path: pathlib.Path
) -> None:
    stack = created(world, template(a={}))
    backup = copied(tmp_path)
    updated(world, stack, template(b={}))
    assert compared(world, stack, backup, is_of_project=False) == Comparison([], [], [])
    row = forget_thing(world, stack)
    [lost] = compared(world, stack, world.database, is_of_project=False).lost
    assert lost.thing.physical_id == row.physical_id


def forget_thing(world: World, stack: Stack, physical_id: str | None = None) -> Resource:
    """Let the one resource of a stack have no thing, or another one; return it."""
    [row] = rows(world, stack).values()
    change = sa.update(tables.resource).where(tables.resource.c.id == row.id)
    world.database.write(lambda conn: conn.execute(change.values(physical_id=physical_id)))
    return row


@pytest.mark.parametrize("before", [None, "gone"])
def test_a_thing_is_found_and_adopted_by_the_key_of_its_resource(world: World, before: str | None) -> None:
    stack = created(world, template(a={}))
    row = forget_thing(world, stack, before)
    comparison = compared(world, stack, world.database)
    assert not comparison.things
    [lost] = comparison.lost
    assert (lost.thing.physical_id, lost.row.resource_id) == (row.physical_id, row.id)
    thing = MarkedThing(TYPE, lost.thing.physical_id, lost.thing.key)

    def adopt() -> bool:
        return world.database.write(
            lambda conn: marked_things.adopt(conn, thing, row.id, before, now=world.clock())
        )

    assert adopt()
    assert not adopt()
    assert rows(world, stack)["a"].physical_id == row.physical_id
    assert compared(world, stack, world.database) == Comparison([], [], [])
    updated(world, stack, template(a={"value": "new"}))
    assert [item.value for item in world.cloud.objects.values()] == ["new"]


def test_a_thing_of_a_resource_that_has_another_one_is_neither_unknown_nor_lost(world: World) -> None:
    stack = created(world, template(a={}))
    other = world.create("other", template(b={}))
    assert world.settle(lambda: ended(world, other), within=60)
    forget_thing(world, stack, rows(world, other)["b"].physical_id)
    assert compared(world, stack, world.database) == Comparison([], [], [])


def test_nothing_is_given_to_a_stack_at_work_and_nothing_is_deleted_for_it(world: World) -> None:
    stack = created(world, template(a={}))
    row = forget_thing(world, stack)
    thing = MarkedThing(TYPE, str(row.physical_id), str(row.key))
    world.update(stack, template(a={}, b={}))
    with pytest.raises(StackBusy, match="UPDATE_IN_PROGRESS"):
        world.database.write(lambda conn: marked_things.adopt(conn, thing, row.id, None, now=world.clock()))
    with pytest.raises(StackBusy):
        world.database.write(lambda conn: marked_things.remove(conn, stack.id, [thing], now=world.clock()))


def test_unknown_things_are_deleted_by_a_nested_stack_and_things_of_rows_are_not(world: World) -> None:
    stack = created(world, template(a={}))
    later = world.create("later", template(b={}, c={}))
    assert world.settle(lambda: ended(world, later), within=60)
    things = [
        MarkedThing("Sim::Server", str(row.physical_id), str(row.key)) for row in rows(world, later).values()
    ]
    known = rows(world, stack)["a"]
    of_row = MarkedThing("Sim::Server", str(known.physical_id), str(uuid.uuid4()))
    of_key = MarkedThing("Sim::Server", "made-twice", str(known.key))

    def remove(*things: MarkedThing) -> Stack | None:
        return world.database.write(
            lambda conn: marked_things.remove(conn, stack.id, things, now=world.clock())
        )

    assert remove(of_row, of_key) is None
    world.database.write(lambda conn: purge(conn, [later.id]))  # As if they had been made after the backup.
    keeper = remove(*things, of_row)
    assert keeper is not None
    assert world.settle(lambda: ended(world, keeper), within=600)
    assert list(world.cloud.objects) == [known.physical_id]
    updated(world, stack, template(a={"value": "new"}))


def test_a_list_that_cannot_be_read_is_reported(world: World) -> None:
    stack = created(world, template(a={}))
    world.cloud.unlistable = PermanentError("refused")
    unread = UnreadList([TYPE, "Alias::Of::It"], "refused")
    assert compared(world, stack, world.database) == Comparison([], [unread], [])
