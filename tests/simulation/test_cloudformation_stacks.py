"""AWS::CloudFormation::Stack: a nested stack whose template has an address."""

import json
import pathlib
import typing

import pytest
from simulation.helpers import rows
from simulation.nested import children, created, hot, server, settled, updated
from simulation.world import World
from stoker.db.rows import Stack
from stoker.db.states import Status
from stoker.engine.stacks import delete_stack
from stoker.resources.nested.base import output_error

Json = typing.Any
URL = "https://templates.test/server.yaml"
OTHER = "https://templates.test/other.yaml"


def inner(**properties: Json) -> str:
    return json.dumps(
        hot(
            {"s": server(value={"get_param": "value"}, **properties)},
            parameters={"value": {"type": "string", "default": "d"}},
            outputs={
                "Address": {"value": {"get_attr": ["s", "address"]}},
                "Broken": {"value": {"get_param": "lost"}},
            },
        )
    )


def outer(url: str = URL, value: str = "v", **properties: Json) -> Json:
    properties_of_stack = {"TemplateURL": url, "Parameters": {"value": value}, **properties}
    outputs = {"address": {"value": {"get_attr": ["n", "Outputs.Address"]}}}
    return hot(
        {"n": {"type": "AWS::CloudFormation::Stack", "properties": properties_of_stack}}, outputs=outputs
    )


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    world = World(tmp_path, hosts=2, threads=4)
    world.templates[URL] = inner()
    return world


def held(world: World) -> list[str]:
    return sorted(item.value for item in world.cloud.objects.values())


def complete(world: World, template: Json) -> Stack:
    stack = created(world, template)
    assert stack.status == Status.COMPLETE, stack.reason
    return stack


def test_its_outputs_are_attributes(world: World) -> None:
    stack = complete(world, outer())
    [item] = world.cloud.objects
    attributes = rows(world, stack)["n"].attributes
    assert attributes["Outputs.Address"] == f"at-{item}"
    assert held(world) == ["v"]
    child = children(world, stack)["n"]
    assert rows(world, stack)["n"].reference_id == child.id
    error = output_error("n", rows(world, stack)["n"].data, "Outputs.Broken")
    assert error is not None
    assert "lost" in error


def test_an_update_fetches_the_template_again(world: World) -> None:
    stack = complete(world, outer())
    before = dict(world.cloud.objects)
    updated(world, stack, outer())
    assert dict(world.cloud.objects) == before
    world.templates[URL] = json.dumps(
        hot({"t": server(value="newer")}, parameters={"value": {"type": "string"}})
    )
    updated(world, stack, {**outer(), "outputs": {}})
    assert held(world) == ["newer"]
    world.templates[OTHER] = inner()
    updated(world, stack, outer(OTHER, "w"))
    assert held(world) == ["w"]
    delete_stack(world.context, stack)
    settled(world, stack)
    assert world.cloud.objects == {}


def test_its_timeout_is_that_of_its_stack(world: World) -> None:
    world.templates[URL] = inner(after=600)
    begun = world.clock.now
    stack = created(world, outer(TimeoutInMinutes=1))
    assert stack.status == Status.FAILED
    assert "timed out" in stack.reason.lower()
    assert world.clock.now - begun < 200


def test_a_template_that_cannot_be_fetched_fails_the_resource(world: World) -> None:
    stack = created(world, outer("https://lost.test/x"))
    assert stack.status == Status.FAILED
    assert "https://lost.test/x does not answer" in stack.reason
    assert children(world, stack) == {}


def test_a_template_that_is_wrong_fails_the_resource(world: World) -> None:
    parameters = {"value": {"type": "string"}}
    world.templates[URL] = json.dumps(hot({"s": {"type": "OS::Lost"}}, parameters=parameters))
    stack = created(world, {**outer(), "outputs": {}})
    assert stack.status == Status.FAILED
    assert "OS::Lost" in stack.reason
