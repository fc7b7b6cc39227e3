"""Parameters of nested templates: a request learns which values are missing, unknown or wrong."""

import json
import pathlib
import typing

import pytest
from simulation.nested import INNER, hot, server
from simulation.world import World
from stoker.template.errors import TemplateError

Json = typing.Any

REQUIRED = {"word": {"type": "string", "constraints": [{"length": {"max": 3}}]}}
OTHER = {"other": {"type": "string", "default": "o"}}
LATER = {"get_attr": ["source", "address"]}
"""The value of another resource, which no request knows."""


def group(kind: str, name: str, **properties: Json) -> typing.Callable[[Json], Json]:
    def make(values: Json) -> Json:
        member = {"type": INNER, "properties": values}
        return {"type": kind, "properties": {name: member, **properties}}

    return make


def chain(values: Json) -> Json:
    properties = {"resources": ["OS::Heat::None", INNER], "resource_properties": values}
    return {"type": "OS::Heat::ResourceChain", "properties": properties}


def stack(values: Json) -> Json:
    return {"type": "OS::Heat::Stack", "properties": {"template": TEMPLATE, "parameters": values}}


TEMPLATE = json.dumps(hot({"s": server()}, parameters={**REQUIRED, **OTHER}))
KINDS: dict[str, typing.Callable[[Json], Json]] = {
    "provider": lambda values: {"type": INNER, "properties": values},
    "group": group("OS::Heat::ResourceGroup", "resource_def", count=2),
    "group of a size not known": group("OS::Heat::ResourceGroup", "resource_def", count=LATER),
    "scaling group": group("OS::Heat::AutoScalingGroup", "resource", min_size=0, max_size=2),
    "chain": chain,
    "stack": stack,
}
PROBLEMS = [
    ({}, r"The Parameter \(word\) was not provided"),
    ({"word": None}, r"The Parameter \(word\) was not provided"),
    ({"word": "a", "typo": 1}, r"The Parameter \(typo\) was not defined in template"),
    ({"word": "long"}, r"Parameter 'word' is invalid|length"),
]
DEEPER = {
    "at the root": lambda resource: ({"x": resource}, {}),
    "below": lambda resource: (
        {"outer": {"type": "outer.yaml"}},
        {"outer.yaml": json.dumps(hot({"x": resource, "source": server()}))},
    ),
}


@pytest.fixture
def world(tmp_path: pathlib.Path) -> World:
    return World(tmp_path, hosts=1)


@pytest.mark.parametrize("depth", DEEPER)
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_learns_what_a_nested_template_lacks_and_refuses(
    world: World, kind: str, depth: str
) -> None:
    """The same beside a value that comes from another resource, and at an update."""
    started = world.create("other", hot({"source": server()}))
    accepted, files = DEEPER[depth](KINDS[kind]({"word": "a", "other": LATER}))
    files = {INNER: TEMPLATE, **files}
    world.create("s", hot({"source": server(), **accepted}), files=files)
    for problem, text in PROBLEMS:
        for values in (problem, {**problem, "other": LATER}):
            resources, more = DEEPER[depth](KINDS[kind](values))
            template = hot({"source": server(), **resources})
            with pytest.raises(TemplateError, match=text):
                world.create("t", template, files={**files, **more})
            with pytest.raises(TemplateError, match=text):
                world.update(started, template, files={**files, **more})


def test_the_member_of_an_empty_group_may_lack_parameters_as_in_heat(world: World) -> None:
    empty = group("OS::Heat::ResourceGroup", "resource_def", count=0)({})
    world.create("s", hot({"x": empty}), files={INNER: TEMPLATE})
