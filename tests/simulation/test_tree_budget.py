"""Budgets of what follows nested stacks: they hold for the whole tree, and the error names the option."""

import json
import pathlib
import typing
from dataclasses import replace

import pytest
from simulation.helpers import ended
from simulation.nested import INNER, child, created, hot, inner, settled
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.exports import abandon_stack, export_stack
from stoker.engine.planning.requests import Goal, UpdateRequest
from stoker.engine.snapshots import take_snapshot
from stoker.engine.tree_budget import TreeBudget, TreeLimits
from stoker.engine.updates import restore_stack
from stoker.features.preview.updates import preview_changes
from stoker.template.budget import BudgetLimits
from stoker.template.compile import Limits
from stoker.template.errors import LimitExceeded

Json = typing.Any
TEXT = "x" * 20_000
CHILDREN = 8
FILES = {INNER: inner(), "note": TEXT}
WIDE = hot({f"n{index}": child(value=str(index)) for index in range(CHILDREN)})
LARGE = TreeLimits(bytes=CHILDREN * len(TEXT))
MANY = TreeLimits(rows=CHILDREN + 3)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


@pytest.fixture
def wide(world: World) -> Stack:
    stack = created(world, WIDE, files=FILES)
    assert stack.status == Status.COMPLETE
    return stack


def limited(world: World, **settings: Json) -> Json:
    return replace(world.context, settings=replace(world.context.settings, **settings))


@pytest.mark.parametrize(("tree", "option"), [(LARGE, "max_tree_bytes"), (MANY, "max_tree_rows")])
def test_a_document_above_a_limit_is_refused_and_the_stack_stays(
    world: World, wide: Stack, tree: TreeLimits, option: str
) -> None:
    context = limited(world, tree=tree)
    with pytest.raises(LimitExceeded, match=option):
        world.database.read(lambda conn: export_stack(context, conn, wide))
    with pytest.raises(LimitExceeded, match=option):
        abandon_stack(context, wide)
    assert world.stack(wide.id) == wide
    document = world.export(wide)
    assert len(json.dumps(document)) > CHILDREN * len(TEXT), "each nested stack repeats the files"


@pytest.mark.parametrize("goal", [hot({}), WIDE])
def test_a_preview_above_the_limit_of_rows_is_refused(world: World, wide: Stack, goal: Json) -> None:
    request = UpdateRequest(Goal(goal, files=FILES))
    with pytest.raises(LimitExceeded, match="max_tree_rows"):
        preview_changes(limited(world, tree=MANY), wide, request, nested=True)
    assert preview_changes(limited(world, tree=MANY), wide, request)


def test_the_nested_stacks_of_a_preview_share_its_work(world: World, wide: Stack) -> None:
    context = limited(world, limits=Limits(budget=BudgetLimits(steps=40)))
    few = hot({"n0": child(value="other")})
    assert preview_changes(context, wide, UpdateRequest(Goal(few, files=FILES)), nested=True)
    with pytest.raises(LimitExceeded, match="steps"):
        preview_changes(context, wide, UpdateRequest(Goal(WIDE, files=FILES)), nested=True)


def test_a_restoration_above_the_limit_is_refused(world: World, wide: Stack) -> None:
    snapshot = take_snapshot(world.context, wide, None)
    stack = settled(world, wide)
    with pytest.raises(LimitExceeded, match="max_tree_rows"):
        restore_stack(limited(world, tree=TreeLimits(rows=CHILDREN - 1)), stack, snapshot.id)
    restore_stack(world.context, stack, snapshot.id)
    assert world.settle(lambda: ended(world, stack), within=60)


def test_no_tree_is_deeper_than_what_follows_it() -> None:
    assert [Limits(depth=depth).deepest for depth in (0, 3, 50, 900)] == [50, 3, 50, 50]
    budget = TreeBudget(TreeLimits())

    def follow(levels: int) -> None:
        with budget.level():
            if levels:
                follow(levels - 1)

    follow(50)
    with pytest.raises(LimitExceeded, match="more than 50 levels"):
        follow(51)
    follow(50)
