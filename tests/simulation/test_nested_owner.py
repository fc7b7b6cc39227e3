"""A nested stack is reached through the resource that it belongs to, whatever ids are elsewhere."""

import json
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation import threads
from simulation.helpers import ended, pass_grace, rows
from simulation.nested import INNER, child, children, created, hot, inner, server, settled
from simulation.world import World
from stoker.db.ids import StackId
from stoker.db.queries import nesting
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status, TaskKind
from stoker.engine.exports import abandon_stack
from stoker.engine.planning.requests import CreateRequest, Goal, UpdateRequest
from stoker.engine.stacks import act_on_stack, create_stack, delete_stack
from stoker.engine.updates import cancel_action
from stoker.features.preview.updates import preview_changes

Json = typing.Any
SECRET = "s3cret-of-another"
FILES = {INNER: inner()}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.fixture
def foreign(world: World) -> Stack:
    """A stack of another project, with a hidden value."""
    template = hot(
        {"theirs": server(value={"get_param": "word"})},
        parameters={"word": {"type": "string", "hidden": True}},
    )
    goal = Goal(template, parameters={"word": SECRET})
    return settled(world, create_stack(world.context, CreateRequest("other", "foreign", goal)))


def name_it(world: World, stack: Stack, foreign: Stack) -> None:
    """Let all resources of a stack have the foreign stack's id, as if any document had brought it in."""
    r = tables.resource
    named = sa.update(r).where(r.c.stack_id == stack.id).values(physical_id=foreign.id)
    world.database.write(lambda conn: conn.execute(named))


@pytest.mark.parametrize("has_child", [True, False])
def test_a_foreign_id_in_the_row_of_a_resource_reaches_nothing(
    world: World, foreign: Stack, has_child: bool
) -> None:
    goal = hot({"n": child(value="mine")})
    stack = created(world, goal, files=FILES)
    (own,) = children(world, stack).values()
    if not has_child:
        gone = {"deleted_at": 1.0, "status": Status.COMPLETE, "action": "DELETE"}
        stacks = sa.update(tables.stack).where(tables.stack.c.id == own.id).values(**gone)
        world.database.write(lambda conn: conn.execute(stacks))
    name_it(world, stack, foreign)
    document = world.export(world.stack(stack.id))
    assert SECRET not in json.dumps(document)
    assert ("id" in document["resources"]["n"]) == has_child
    (change,) = preview_changes(
        world.context, world.stack(stack.id), UpdateRequest(Goal(hot({}), files=FILES)), nested=True
    )
    assert [inside.stack_id for inside in change.inside] == ([own.id] if has_child else [])
    row = rows(world, stack)["n"]
    links = world.database.read(lambda conn: nesting.children(conn, [stack.id], [row.id]))
    assert links == ({row.id: (own.id, own.name)} if has_child else {})
    act_on_stack(world.context, world.stack(stack.id), TaskKind.CHECK)
    world.settle(lambda: ended(world, stack), within=60)
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE
    assert world.stack(foreign.id) == foreign


def test_an_abandoned_stack_has_nothing_foreign(world: World, foreign: Stack) -> None:
    stack = created(world, hot({"n": child(value="mine")}), files=FILES)
    name_it(world, stack, foreign)
    document = abandon_stack(world.context, world.stack(stack.id))
    assert document["resources"]["n"]["name"].startswith("s-n-")
    assert SECRET not in json.dumps(document)
    assert world.stack(foreign.id) == foreign


@pytest.mark.parametrize("place", ["resource_id", "id", "stack_id", "physical_id", "nested"])
def test_an_adoption_takes_no_stack_that_exists(world: World, foreign: Stack, place: str) -> None:
    stack = created(world, hot({"n": child(value="mine")}), files=FILES)
    document = abandon_stack(world.context, world.stack(stack.id))
    document["resources"]["n"][place] = foreign.id
    own = settled(world, world.adopt("t", document))
    exported = world.export(own)
    assert SECRET not in json.dumps(exported)
    assert exported["resources"]["n"]["id"] != foreign.id
    assert rows(world, own)["n"].physical_id != foreign.id
    delete_stack(world.context, own)
    settled(world, own)
    assert world.stack(foreign.id) == foreign


def test_a_document_without_the_inner_resources_stores_no_id(world: World, foreign: Stack) -> None:
    document = {
        "template": hot({"n": child()}),
        "files": FILES,
        "environment": {},
        "resources": {"n": {"resource_id": foreign.id, "type": INNER}},
    }
    own = settled(world, world.adopt("t", document))
    assert own.status == Status.FAILED
    assert rows(world, own)["n"].physical_id is None


def test_the_deletion_finds_the_stack_that_a_cancelled_adoption_has_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adoption has another key than a creation, and is cancelled before the id is stored."""
    document = abandon_stack(world.context, created(world, hot({"n": child()}), files=FILES))
    create = world.nesting.create

    def slow(*arguments: Json) -> StackId:
        stack_id = create(*arguments)
        threads.hang()
        return stack_id

    monkeypatch.setattr(world.nesting, "create", slow)
    stack = world.adopt("t", document)
    world.calm()
    assert set(children(world, stack)) == {"n"}
    cancel_action(world.context, world.stack(stack.id), rollback=False)
    pass_grace(world)
    world.calm()
    assert rows(world, stack)["n"].physical_id is None
    delete_stack(world.context, world.stack(stack.id))
    assert settled(world, stack).status == Status.COMPLETE
    living = sa.select(tables.stack.c.name).where(
        tables.stack.c.root_id == stack.id, tables.stack.c.deleted_at.is_(None)
    )
    assert world.database.read(lambda conn: conn.execute(living).all()) == []
