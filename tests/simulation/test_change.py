"""The start of an update: whom its limits concern, and what it keeps of the stack as it was."""

import dataclasses
import pathlib
import typing

import pytest
import sqlalchemy as sa
from simulation.helpers import cancel, created, ended, on, rows, template
from simulation.nested import INNER, child, children, hot, inner, server
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.schema import tables
from stoker.engine.change import Change, commit_update
from stoker.engine.context import EngineContext
from stoker.engine.exports import abandon_stack
from stoker.engine.goals import compile_for
from stoker.engine.planning.requests import Goal
from stoker.engine.quotas import QuotaName, Quotas
from stoker.template.compile import Limits
from stoker.template.errors import LimitExceeded

Json = typing.Any
SINKS = {"event_sinks": [{"type": "zaqar-queue", "target": "q"}]}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1, quotas=Quotas({**Quotas().defaults, QuotaName.RESOURCES: 2}))


def flat(*names: str, **properties: Json) -> Json:
    return template(**dict.fromkeys(names, properties))


def test_an_update_that_needs_more_than_the_quota_is_refused_and_changes_nothing(world: World) -> None:
    stack = world.stack(created(world, flat("a", "b")).id)
    with pytest.raises(LimitExceeded):
        world.update(stack, flat("a", "b", "c"))
    assert world.stack(stack.id) == stack
    world.update(stack, flat("a", "b", "c"), is_limited=False)
    world.update(stack, flat("d", "e", "f"))  # It has not grown.
    assert world.stack(stack.id).own_resources == 3


def tasks_of(world: World, stack: Stack) -> set[tuple[str, str]]:
    """Return the kinds of the present traversal's tasks, with the names of their resources."""
    t = tables.task.c
    r = tables.resource.c
    of_stack = sa.select(t.kind, r.name).where(t.traversal == stack.traversal, r.id == t.resource_id)
    return {tuple(row) for row in world.database.read(lambda conn: conn.execute(of_stack).all())}


def test_a_rollback_may_need_more_than_the_quota_and_compares_nothing(world: World) -> None:
    stack = world.create("s", flat("a", "b", "c"), is_limited=False)
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, flat("a", "b", value="new"))
    rolled_back = cancel(world, stack, rollback=True)
    assert rolled_back.action == "ROLLBACK"
    assert {kind for kind, _ in tasks_of(world, rolled_back)} <= {"create", "update"}
    assert world.settle(lambda: ended(world, stack), within=60)
    assert set(rows(world, stack)) == {"a", "b", "c"}


def limited_to(world: World, resources: int) -> EngineContext:
    """Return the context of an operator who has lowered the limit meanwhile."""
    settings = dataclasses.replace(world.context.settings, limits=Limits(resources=resources), quotas=None)
    return dataclasses.replace(world.context, settings=settings)


@pytest.mark.parametrize(
    ("names", "is_limited", "refused"), [("st", True, True), ("st", False, False), ("t", True, False)]
)
def test_a_nested_stack_above_the_limit_changes_but_does_not_grow(
    tmp_path: pathlib.Path, names: str, *, is_limited: bool, refused: bool
) -> None:
    world = World(tmp_path, hosts=1)
    stack = world.create("s", hot({"n": child()}), files={INNER: inner()})
    assert world.settle(lambda: ended(world, stack), within=60)
    nested = world.stack(children(world, stack)["n"].id)
    context = limited_to(world, 1)
    compiled = compile_for(world.context, nested, Goal(hot({name: server(value="new") for name in names})))
    change = Change(nested, compiled, lambda now: now + 60, is_limited=is_limited)
    if refused:
        with pytest.raises(LimitExceeded, match="max_resources"):
            commit_update(context, change)
        assert world.stack(nested.id) == nested
    else:
        assert commit_update(context, change)
        assert (world.stack(nested.id).own_resources, world.stack(nested.id).goal_size) == (len(names), 0)


def test_the_size_of_a_goal_is_that_of_the_request(world: World) -> None:
    stack = created(world, flat("a"))
    world.update(stack, flat("a", value="v" * 1000))
    assert world.stack(stack.id).goal_size > stack.goal_size + 900


def test_event_sinks_come_and_go_with_the_environment_and_a_rollback_brings_them_back(world: World) -> None:
    stack = created(world, flat("a"))
    world.update(stack, flat("a"), environment=SINKS)
    assert world.stack(stack.id).has_sinks
    assert world.settle(lambda: ended(world, stack), within=60)
    world.update(stack, flat("a", value="new"))
    assert not world.stack(stack.id).has_sinks
    assert cancel(world, stack, rollback=True).has_sinks


def test_the_rollback_of_an_adoption_leaves_what_it_had_not_begun_with(world: World) -> None:
    document = abandon_stack(world.context, created(world, template(a={}, b={"needs": on("a")})))
    objects = dict(world.cloud.objects)
    document["resources"]["a"]["resource_id"] = "thing-77"
    again = world.adopt("t", document, disable_rollback=False)
    assert world.settle(lambda: world.stack(again.id).action == "ROLLBACK" and ended(world, again), within=60)
    assert rows(world, again) == {}
    assert world.cloud.objects == objects
