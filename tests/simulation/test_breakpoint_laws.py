"""Random graphs with random breakpoints, beside an interpreter that is too simple to be wrong (I10)."""

import pathlib
import random
import typing

import pytest
from simulation.helpers import ended, on, rows, template
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.breakpoints import clear_breakpoint, continue_held

Json = typing.Any
GRAPHS = 12
Needs = dict[str, list[str]]
Hooks = dict[str, set[str]]


def random_graph(dice: random.Random) -> tuple[Needs, Hooks]:
    names = [f"r{index}" for index in range(dice.randint(1, 12))]
    needs = {n: dice.sample(names[:i], k=min(i, dice.choice([0, 1, 1, 2, 3]))) for i, n in enumerate(names)}
    hooks = {n: {hook for hook in ("pre-create", "post-create") if dice.random() < 0.2} for n in names}
    return needs, hooks


def not_behind(needs: Needs, hooks: Hooks) -> set[str]:
    """Return the resources that exist when nothing more happens by itself."""
    names: set[str] = set()
    passed: set[str] = set()
    for name, needed in needs.items():
        if set(needed) <= passed and "pre-create" not in hooks[name]:
            names.add(name)
            if "post-create" not in hooks[name]:
                passed.add(name)
    return names


def create(world: World, name: str, needs: Needs, hooks: Hooks) -> Stack:
    document = template(**{n: {"needs": on(*needed), "after": 0} for n, needed in needs.items()})
    entries = {n: {"hooks": sorted(points)} for n, points in hooks.items() if points}
    return world.create(name, document, environment={"resource_registry": {"resources": entries}})


def names_made(world: World, stack: Stack) -> set[str]:
    resource_rows = rows(world, stack)
    assert {(row.action, row.status) for row in resource_rows.values()} <= {
        ("INIT", "COMPLETE"),
        ("CREATE", "COMPLETE"),
    }
    return {name for name, row in resource_rows.items() if row.action == "CREATE"}


@pytest.mark.parametrize("seed", range(4))
def test_at_rest_is_made_what_is_not_behind_a_breakpoint_and_any_order_of_clearing_ends_alike(
    tmp_path: pathlib.Path, seed: int
) -> None:
    dice = random.Random(seed)
    world = World(tmp_path, hosts=2, threads=4, seed=seed)
    graphs = [random_graph(dice) for _ in range(GRAPHS)]
    stacks = [create(world, f"s{i}", *graph) for i, graph in enumerate(graphs)]
    held = True
    while held:
        assert not world.settle(lambda: False, within=1)
        held = False
        for stack, (needs, hooks) in zip(stacks, graphs, strict=True):
            expected = not_behind(needs, hooks)
            assert names_made(world, stack) == expected
            current = world.held(world.stack(stack.id))
            at = {(item.resource_name, item.hook) for item in current}
            before = {
                n for n in needs if "pre-create" in hooks[n] and set(needs[n]) <= expected - _stopped(hooks)
            }
            assert at == {(n, "pre-create") for n in before} | {
                (n, "post-create") for n in expected & _stopped(hooks)
            }
            if current:
                held = True
                one = dice.choice(current)
                clear_breakpoint(world.context, world.stack(stack.id), one.resource_name, one.hook)
                hooks[one.resource_name].discard(one.hook)
            else:
                assert ended(world, stack)
                assert world.stack(stack.id).status == Status.COMPLETE
    for stack, (needs, _) in zip(stacks, graphs, strict=True):
        assert names_made(world, stack) == set(needs)
    assert len(world.cloud.objects) == len(world.cloud.physical_ids) == sum(len(needs) for needs, _ in graphs)
    assert world.cloud.wrong == []


def _stopped(hooks: Hooks) -> set[str]:
    return {name for name, points in hooks.items() if "post-create" in points}


def test_steps_make_one_layer_at_a_time(tmp_path: pathlib.Path) -> None:
    dice = random.Random(1)
    world = World(tmp_path, hosts=2, threads=4)
    for number in range(6):
        needs, _ = random_graph(dice)
        roots = {n: {"pre-create"} if not needed else set() for n, needed in needs.items()}
        stack = create(world, f"s{number}", needs, roots)
        done = set[str]()
        while not ended(world, stack):
            world.settle(lambda: False, within=1)
            names = {item.resource_name for item in world.held(world.stack(stack.id))}
            assert names_made(world, stack) == done
            assert names == {n for n in needs if n not in done and set(needs[n]) <= done}
            continue_held(world.context, world.stack(stack.id), step=True)
            done |= names
            world.settle(lambda: False, within=1)
        assert done == set(needs)
