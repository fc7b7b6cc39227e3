"""Hosts whose clocks are wrong, or are set while they work: nothing strikes early, nothing waits for it."""

import pathlib
import typing

import pytest
from simulation.helpers import template
from simulation.world import World
from stoker.db.states import Status

Json = typing.Any
HOURS = 7200.0
COUNT = 30


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    simulated = World(tmp_path, hosts=3, threads=4)
    simulated.set_now = 0.0
    simulated.ahead = dict.fromkeys(simulated.ahead, 0.0)
    return simulated


def statuses(world: World, stacks: list[Json]) -> list[str]:
    return [world.stack(stack.id).status for stack in stacks]


@pytest.mark.parametrize("ahead", [HOURS, pytest.param(-HOURS, marks=pytest.mark.full)])
def test_no_timeout_strikes_early_or_late_by_a_conductor_with_a_wrong_clock(
    world: World, ahead: float
) -> None:
    world.ahead["host1"] = ahead
    slow = template(a={"endless": True, "after": 1})
    stacks = [world.create(f"s{number}", slow, timeout_mins=2) for number in range(COUNT)]
    world.settle(lambda: False, within=110)
    assert statuses(world, stacks) == [Status.IN_PROGRESS] * COUNT
    assert world.settle(lambda: statuses(world, stacks) == [Status.FAILED] * COUNT, within=25)


@pytest.mark.parametrize("jump", [pytest.param(HOURS, marks=pytest.mark.full), -HOURS])
def test_polls_keep_their_pace_while_clocks_are_set(world: World, jump: float) -> None:
    stacks = [world.create(f"s{number}", template(a={"looks": 30, "after": 1})) for number in range(COUNT)]
    world.settle(lambda: False, within=5)
    world.ahead = dict.fromkeys(world.ahead, jump)
    assert world.settle(lambda: statuses(world, stacks) == [Status.COMPLETE] * COUNT, within=120)
