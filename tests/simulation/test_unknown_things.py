"""Things of the cloud of which no row knows, as those made after a backup that was restored."""

import contextlib
import pathlib
import sqlite3
import typing

import pytest
from simulation.helpers import created, ended, rows, template, updated
from simulation.world import World
from stoker.conductor.drift.context import DriftServices
from stoker.conductor.drift.unknown import Comparison, UnknownThings, UnreadList
from stoker.db.engine import Database
from stoker.db.rows import Stack
from stoker.resources.contract.context import Collection
from stoker.resources.errors import PermanentError
from stoker.resources.openstack.marks import TagMark, mark_of
from stoker.resources.plugin import ResourceType
from stoker.resources.registry import ResourceRegistry

Json = typing.Any
TYPE = "OS::Sim::Listed"
FOREIGN = "made-by-hand"


def registry(world: World) -> ResourceRegistry:
    """Types of a service that lists the things of the world's cloud with their marks, and one of others."""

    class Listed(ResourceType):
        def collection(self) -> Collection | None:
            return Collection("compute", "/servers", lambda context, project_id: self._listed())

        def key_on(self, remote: typing.Mapping[str, Json]) -> str | None:
            return TagMark().key_on(remote)

        def _listed(self) -> dict[str, Json]:
            world.cloud.listed()  # Raises what it is to raise.
            remotes = {
                physical_id: {"name": physical_id, "tags": [mark_of(key)]}
                for key, physical_id in world.cloud.physical_ids.items()
                if physical_id in world.cloud.objects
            }
            return {**remotes, FOREIGN: {"tags": ["stoker-of-mine"]}}

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


def compared(world: World, stack: Stack, database: Database) -> Comparison:
    services = DriftServices(
        database=database,
        registry=registry(world),
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
    assert compared(world, stack, world.database) == Comparison([], [])
    backup = copied(tmp_path)
    updated(world, stack, template(a={}, b={"size": 2}, c={}))
    later = world.create("later", template(d={}))
    assert world.settle(lambda: ended(world, later), within=60)
    assert compared(world, stack, world.database) == Comparison([], [])
    new_ids = {rows(world, stack)[name].physical_id for name in ("b", "c")}
    new_ids.add(rows(world, later)["d"].physical_id)
    comparison = compared(world, stack, backup)
    assert {thing.physical_id for thing in comparison.things} == new_ids
    assert {thing.type for thing in comparison.things} == {TYPE}
    assert not comparison.unread


def test_a_thing_that_a_lost_creation_has_made_is_known_by_its_key(
    world: World, tmp_path: pathlib.Path
) -> None:
    stack = created(world, template(a={}))
    backup = copied(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "backup.sqlite")) as db:
        db.execute("UPDATE resource SET physical_id = NULL WHERE stack_id = ?", (stack.id,))
        db.commit()
    assert compared(world, stack, backup) == Comparison([], [])


def test_a_list_that_cannot_be_read_is_reported(world: World) -> None:
    stack = created(world, template(a={}))
    world.cloud.unlistable = PermanentError("refused")
    unread = UnreadList(stack.project_id, [TYPE, "Alias::Of::It"], "refused")
    assert compared(world, stack, world.database) == Comparison([], [unread])
