"""The limit of resources, and the quota, hold for a tree whose groups have counts that only steps know."""

import json
import pathlib
import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from harness.lock_order import locks_taken
from simulation.helpers import ended
from simulation.nested import children, group, hot, settled
from simulation.world import World
from stoker.db import projects
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.db.states import Status
from stoker.engine.planning.requests import CreateRequest, Goal
from stoker.engine.quotas import QuotaName, Quotas
from stoker.engine.stacks import create_stack, delete_stack
from stoker.engine.tree_limit import charge
from stoker.template.compile import Limits
from stoker.template.errors import LimitExceeded

Json = typing.Any
MOST = 20
COUNT = "file:///count.yaml"


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4, limits=Limits(resources=MOST))


def number(value: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": value, "type": "number"}}


def counted(value: Json, **definition: Json) -> Json:
    """A group whose count is an attribute, so that no request knows it."""
    body = group({"get_attr": ["v", "value"]})
    body["properties"].update(definition)
    return hot({"v": number(value), "g": body})


def inner(value: int) -> str:
    return json.dumps(counted(value))


def stored_rows(world: World, stack: Stack) -> int:
    query = (
        sa.select(sa.func.count())
        .select_from(tables.resource)
        .join(tables.stack, tables.stack.c.id == tables.resource.c.stack_id)
        .where(tables.stack.c.root_id == stack.id)
    )
    return world.database.read(lambda conn: conn.execute(query).scalar_one())


def used(world: World, project: str = "tenant") -> int:
    return world.database.read(lambda conn: projects.get(conn, project)).usage["resources"]


def test_groups_in_groups_stop_at_the_limit_of_the_tree(world: World) -> None:
    goal = counted(9, resource_def={"type": COUNT})
    stack = settled(world, world.create("s", goal, files={COUNT: inner(9)}), within=200)
    assert stack.status == Status.FAILED
    assert f"above the limit of {MOST} ([stacks] max_resources)" in stack.reason
    assert stored_rows(world, stack) <= MOST


def test_a_tree_as_large_as_it_may_be_is_made_and_changed(world: World) -> None:
    stack = settled(world, world.create("s", counted(MOST - 2)))
    assert (stack.status, stored_rows(world, stack), used(world)) == (Status.COMPLETE, MOST, MOST)
    world.update(stack, counted(3))
    stack = settled(world, stack)
    assert (stack.status, stored_rows(world, stack), used(world)) == (Status.COMPLETE, 5, 5)


def test_a_tree_above_a_limit_that_was_lowered_does_not_grow(world: World) -> None:
    """A tree that does not grow locks nothing; one that does is counted behind the project's lock."""
    stack = settled(world, world.create("s", hot({"g": group(4)})))
    (members,) = children(world, stack).values()
    settings = replace(world.context.settings, limits=Limits(resources=4))
    with locks_taken() as taken:
        world.database.write(lambda conn: charge(conn, settings, members, is_limited=False))
    assert taken == []
    with locks_taken() as taken, pytest.raises(LimitExceeded, match="would have 5 resources"):
        world.database.write(lambda conn: charge(conn, settings, members, is_limited=True))
    assert taken == ["project"]


def test_a_tree_without_a_limit_is_counted_only(tmp_path: pathlib.Path) -> None:
    world = World(tmp_path, hosts=1, threads=4, limits=Limits(resources=0))
    stack = settled(world, world.create("s", counted(4)))
    assert (stack.status, used(world)) == (Status.COMPLETE, 6)


def test_an_update_that_would_grow_it_too_much_makes_nothing(world: World) -> None:
    stack = settled(world, world.create("s", counted(3)))
    world.update(stack, counted(MOST))
    stack = settled(world, stack)
    assert (stack.status, stored_rows(world, stack)) == (Status.FAILED, 5)
    assert "max_resources" in stack.reason
    (members,) = children(world, stack).values()
    assert members.status == Status.COMPLETE


def test_what_the_request_could_not_count_counts_for_the_quota(tmp_path: pathlib.Path) -> None:
    limits = Quotas({**Quotas().defaults, QuotaName.RESOURCES: 12})
    world = World(tmp_path, hosts=2, threads=4, quotas=limits)
    first = settled(world, world.create("a", counted(6)))
    assert (first.status, used(world)) == (Status.COMPLETE, 8)
    second = settled(world, world.create("b", counted(6)))
    assert second.status == Status.FAILED
    assert "above its quota of 12" in second.reason
    assert used(world) <= 12
    other = settled(world, create_stack(world.context, CreateRequest("other", "c", Goal(counted(6)))))
    assert other.status == Status.COMPLETE
    delete_stack(world.context, world.stack(first.id))
    assert world.settle(lambda: ended(world, first), within=60)
    world.update(second, counted(6))
    assert settled(world, second).status == Status.COMPLETE


def test_trees_whose_counts_are_known_pay_no_second_time(tmp_path: pathlib.Path) -> None:
    """An admin may create more than a quota; the nested stacks that the request has counted are made then."""
    limits = Quotas({**Quotas().defaults, QuotaName.RESOURCES: 1})
    world = World(tmp_path, hosts=2, threads=4, quotas=limits)
    stack = settled(world, world.create("s", hot({"g": group(4)}), is_limited=False))
    assert (stack.status, used(world)) == (Status.COMPLETE, 5)
