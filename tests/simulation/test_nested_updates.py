"""Updates of stacks whose nested stacks were deleted by hand, or have parameters that nobody may change."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import rows
from simulation.nested import (
    INNER,
    autoscaling_group,
    child,
    children,
    created,
    group,
    hot,
    inner,
    server,
    settled,
    updated,
)
from simulation.world import World
from stoker.db.ids import StackId
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack

Json = typing.Any
FILES = {INNER: inner()}
FIXED = json.dumps(
    hot(
        {"s": server(value={"get_param": "value"})},
        parameters={"value": {"type": "string", "immutable": True, "default": "d"}},
    )
)


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=2, threads=4)


def deleted_by_hand(world: World, stack: Stack, name: str) -> None:
    nested = world.stack(StackId(children(world, stack)[name].id))
    delete_stack(world.context, nested)
    assert settled(world, nested).status == Status.COMPLETE
    assert children(world, stack).keys() == set(rows(world, stack)) - {name}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (child(value="1"), child(value="2")),
        (child(value="1"), child(value="1")),
        (group(2, member={"value": "1"}), group(2, member={"value": "2"})),
        (autoscaling_group(1, values={"value": "1"}), autoscaling_group(1, values={"value": "2"})),
    ],
)
def test_a_nested_stack_that_somebody_has_deleted_is_replaced(
    world: World, before: Json, after: Json
) -> None:
    stack = created(world, hot({"n": before, "other": child()}), files=FILES)
    deleted_by_hand(world, stack, "n")
    updated(world, stack, hot({"n": after, "other": child()}), files=FILES)
    assert children(world, stack).keys() == {"n", "other"}
    expected = after["properties"].get("value") or "2"
    assert expected in {item.value for item in world.cloud.objects.values()}


def member(**properties: Json) -> Json:
    return group(1, resource_def={"type": INNER, "properties": properties})


def inline(value: str) -> Json:
    properties = {"template": FIXED, "parameters": {"value": value}}
    return {"type": "OS::Heat::Stack", "properties": properties}


@pytest.mark.parametrize(
    ("resources", "default"),
    [
        ({"n": child(value="2"), "g": member(value="1"), "o": inline("1")}, "d"),
        ({"n": child(value="1"), "g": member(value="2"), "o": inline("1")}, "d"),
        ({"n": child(value="1"), "g": member(value="1"), "o": inline("2")}, "d"),
        ({"n": child(value="1"), "g": member(), "o": inline("1")}, "2"),
    ],
    ids=["provider", "member", "stack", "parameter_defaults"],
)
def test_a_parameter_of_a_nested_template_that_may_not_change_fails_the_update(
    world: World, resources: Json, default: str
) -> None:
    goal = hot({"n": child(value="1"), "g": member(value="1"), "o": inline("1")})
    stack = created(world, goal, files={INNER: FIXED})
    before = dict(world.cloud.objects)
    environment = {"parameter_defaults": {"value": default}}
    world.update(stack, hot(resources), files={INNER: FIXED}, environment=environment)
    stack = settled(world, stack)
    assert stack.status == Status.FAILED
    assert "The following parameters are immutable and may not be updated: value" in stack.reason
    assert world.cloud.objects == before


def test_the_same_value_of_such_a_parameter_is_no_change(world: World) -> None:
    stack = created(world, hot({"n": child(value="1")}), files={INNER: FIXED})
    updated(world, stack, hot({"n": child(value="1")}), files={INNER: FIXED})


def test_a_group_is_judged_by_the_first_member_that_stays(world: World) -> None:
    constrained = json.dumps(
        hot(
            {"s": server(value={"get_param": "value"})},
            parameters={"value": {"type": "string", "constraints": [{"allowed_pattern": "[1-9]"}]}},
        )
    )
    definition = {"type": INNER, "properties": {"value": "%index%"}}
    body = group(2, resource_def=definition, removal_policies=[{"resource_list": [0, "2"]}])
    stack = created(world, hot({"g": body}), files={INNER: constrained})
    assert stack.status == Status.COMPLETE, stack.reason
    assert {item.value for item in world.cloud.objects.values()} == {"1", "3"}


def test_a_capacity_of_none_removes_all_members(world: World) -> None:
    stack = created(world, hot({"g": autoscaling_group(0, desired_capacity=3)}))
    assert len(world.cloud.objects) == 3
    updated(world, stack, hot({"g": autoscaling_group(0, desired_capacity=0)}))
    assert world.cloud.objects == {}
    updated(world, stack, hot({"g": autoscaling_group(0, desired_capacity=2)}))
    assert len(world.cloud.objects) == 2
    updated(world, stack, hot({"g": autoscaling_group(0)}))
    assert len(world.cloud.objects) == 2
