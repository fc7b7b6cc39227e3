"""The values that resources inside of nested stacks may name, read in raw templates."""

import json
import typing

import pytest
from stoker.engine.planning.nested_contents import NestedContents
from stoker.resources.contract.children import ChildGoal
from stoker.resources.contract.schema import Property
from stoker.resources.heat.resource_chain import ResourceChain
from stoker.resources.nested.base import NestedType
from stoker.resources.registry import ResourceRegistry
from stoker.template.budget import Budget
from stoker.template.environment import Environment
from stoker.template.language import ResourceDefinition
from stoker.template.load import LoadedTemplates
from stoker.template.residual import node
from unit.engine.planning.test_implied import TYPES

Json = typing.Any


class Nest(NestedType):
    """A type whose template is a map that it has not made of values."""

    properties_schema = {"template": Property("map"), "network": Property("string")}

    def static_goal(self, values: Json, definition: ResourceDefinition) -> ChildGoal:
        return ChildGoal(values["template"], {"network": values["network"]})


REGISTRY = ResourceRegistry({**TYPES, "OS::Heat::ResourceChain": ResourceChain, "Nest": Nest})
NAMES = ("network", "router", "subnet")
GIVEN = {name: f"{name} of the stack" for name in NAMES}
NETWORK = {"network": {"get_param": "network"}}
SUBNET = {"type": "Subnet", "properties": NETWORK}
GROUP = "OS::Heat::ResourceGroup"


def template(**resources: Json) -> str:
    return json.dumps({"heat_template_version": "2018-08-31", "resources": resources})


MAKES = template(s=SUBNET)


def contents_of(
    files: Json, *, most: int = 0, budget: Budget | None = None, targets: Json = ("Subnet", "Port")
) -> NestedContents:
    budget = budget or Budget()
    return NestedContents(REGISTRY, files, LoadedTemplates(budget, most), budget, set(targets))


def values(
    kind: str, properties: Json, files: Json, environment: Environment | None = None, **more: Json
) -> Json:
    definition = ResourceDefinition("n", kind, kind, properties, template=kind)
    values_by_type = contents_of(files, **more).values(definition, environment or Environment())
    return {type_name: sorted(names) for type_name, names in values_by_type.items()}


def read_by(environment: Environment | None = None, **resources: Json) -> Json:
    """Return the names of the parameters that resources inside may read, by their types."""
    files = {"n.yaml": template(**resources), "makes.yaml": MAKES}
    values_by_type = values("n.yaml", GIVEN, files, environment)
    return {kind: {each.partition(" ")[0] for each in of_type} for kind, of_type in values_by_type.items()}


def subnet(properties: Json, **others: Json) -> Json:
    return read_by(s={"type": "Subnet", "properties": properties}, **others)


OTHER = {"type": "Net", "properties": {"value": {"get_param": "router"}}}


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        (NETWORK, {"network"}),
        ({"networks": [{"a": {"get_param": "network"}}, {"Ref": "router"}]}, {"network", "router"}),
        ({"network": {"get_param": ["network", "key"]}}, {"network"}),
        ({"network": {"get_param": []}}, set()),
        ({"network": {"get_param": {"get_param": "subnet"}}}, {"subnet"}),
        ({"network": "router"}, set()),
        ({"network": {"get_resource": "o"}}, {"router"}),
        ({"network": {"Ref": "o"}}, {"router"}),
        ({"network": {"get_attr": ["o", "value"]}}, {"router"}),
        ({"network": {"Fn::GetAtt": ["o", "value"]}}, {"router"}),
        ({"network": {"Fn::GetAtt": "o.value"}}, {"router"}),
        ({"network": "o"}, set()),
        ({"network": {"get_resource": "gone"}}, set()),
        ({"network": {"get_resource": "text"}}, set()),
        ({"network": {"get_resource": 5}}, set()),
        ({"network": {"get_attr": []}}, set()),
        ({"value": {"get_resource": "s"}, **NETWORK}, {"network"}),
        (None, set()),
    ],
)
def test_a_resource_reads_parameters_itself_and_by_the_resources_that_it_refers_to(
    properties: Json, names: set[str]
) -> None:
    assert subnet(properties, o=OTHER, text="no resource") == {"Subnet": names}


def test_resources_of_a_type_read_what_each_of_them_reads() -> None:
    other = {"type": "Subnet", "properties": {"network": {"get_param": "router"}}}
    assert read_by(s=SUBNET, t=other, n=OTHER) == {"Subnet": {"network", "router"}}


def test_the_members_of_a_group_are_read_where_the_template_defines_them() -> None:
    assert read_by(g={"Type": GROUP, "Properties": {"resource_def": SUBNET}}) == {"Subnet": {"network"}}


@pytest.mark.parametrize("below", [None, {}, {"router": 1}, {"get_file": "x"}])
def test_of_a_nested_stack_the_properties_are_read_that_resources_inside_read(below: Json) -> None:
    properties = {"network": {"get_param": "subnet"}, "router": {"Ref": "router"}}
    inner = {"type": "makes.yaml", "properties": properties}
    assert read_by(d=inner) == {"Subnet": {"subnet"}}
    assert read_by(d={**inner, "properties": below}) == {"Subnet": set()}


@pytest.mark.parametrize(
    "document",
    [
        "{Subnet: [",
        "[Subnet]",
        "{}  # Subnet",
        json.dumps({"resources": ["Subnet"]}),
        template(s=["Subnet"]),
        template(s={"type": ["Subnet"]}),
    ],
)
def test_what_is_no_template_has_nothing_inside(document: str) -> None:
    assert values("n.yaml", GIVEN, {"n.yaml": document}) == {}


@pytest.mark.parametrize(
    ("document", "inside"),
    [
        (json.loads(MAKES), {"Subnet": ["x"]}),
        (
            {
                "AWSTemplateFormatVersion": "2010-09-09",
                "Resources": {"s": {"Type": "Subnet", "Properties": {"network": {"Ref": "network"}}}},
            },
            {"Subnet": ["x"]},
        ),
        ({"heat_template_version": "2018-08-31"}, {}),
        ({}, {}),
    ],
)
def test_a_template_may_be_a_map_with_functions(document: Json, inside: Json) -> None:
    assert values("Nest", {"template": document, "network": "x"}, {}) == inside


@pytest.mark.parametrize(
    ("environment", "inside"),
    [
        (Environment(), {}),
        (Environment(registry={"My::Net": "Subnet"}), {"Subnet": {"network"}}),
        (Environment(registry={"My::Net": "makes.yaml"}), {"Subnet": {"network"}}),
        (Environment(registry={"My::Net": "gone.yaml"}), {}),
        (Environment(operator=Environment(registry={"My::Net": "makes.yaml"})), {"Subnet": {"network"}}),
        (Environment(registry={"resources": {"n": {"s": {"My::Net": "Subnet"}}}}), {"Subnet": {"network"}}),
        (Environment(registry={"resources": {"m": {"s": {"My::Net": "Subnet"}}}}), {}),
        (Environment(registry={"Subnet": "Net"}), {}),
    ],
)
def test_types_inside_are_those_that_the_environment_says(environment: Environment, inside: Json) -> None:
    assert read_by(environment, s={"type": "My::Net", "properties": NETWORK}) == inside


def test_a_type_is_known_by_its_own_name_and_by_the_one_that_it_has_in_the_environment() -> None:
    environment = Environment(registry={"Port": "Subnet"})
    port = {"type": "Port", "properties": NETWORK}
    assert read_by(environment, s=port) == {"Port": {"network"}, "Subnet": {"network"}}


def chain(levels: int) -> dict[str, str]:
    """Return templates inside each other, of which the last one has a subnet."""
    outer = {
        f"{level}.yaml": template(d={"type": f"{level + 1}.yaml", "properties": NETWORK})
        for level in range(1, levels)
    }
    return {**outer, f"{levels}.yaml": MAKES}


@pytest.mark.parametrize(("levels", "inside"), [(1, True), (20, True), (21, False)])
def test_templates_are_read_as_deep_as_any_may_be(levels: int, *, inside: bool) -> None:
    assert values("1.yaml", {"network": "x"}, chain(levels)) == ({"Subnet": ["x"]} if inside else {})
    group = {"resource_def": {"type": "1.yaml", "properties": {"network": "x"}}}
    assert values(GROUP, group, chain(levels - 1 or 1)) == ({"Subnet": ["x"]} if inside else {})


@pytest.mark.parametrize(
    ("properties", "inside"),
    [
        ({"resource_def": {"type": "Subnet", "properties": {"network": "x", "value": "y"}}}, ["x", "y"]),
        ({"resource_def": {"type": "makes.yaml", "properties": {"network": "x", "value": "y"}}}, ["x"]),
        ({"resource_def": {"type": "Subnet"}}, []),
        ({"count": 0, "resource_def": {"type": "Subnet", "properties": {"network": "x"}}}, None),
        ({"count": "many", "resource_def": {"type": "Subnet"}}, None),
        ({"resource_def": {"type": "Net", "properties": {"network": "x"}}}, None),
        ({"count": node("get_attr", "t", "x"), "resource_def": {"type": "Subnet"}}, []),
    ],
)
def test_the_members_of_a_group_name_what_their_definition_does(properties: Json, inside: Json) -> None:
    assert values(GROUP, properties, {"makes.yaml": MAKES}) == ({} if inside is None else {"Subnet": inside})


def test_members_of_several_types_name_all_that_they_have() -> None:
    chain_of = {"resources": ["Subnet", "makes.yaml"], "resource_properties": {"network": "x"}}
    assert values("OS::Heat::ResourceChain", chain_of, {"makes.yaml": MAKES}) == {"Subnet": ["x", "x"]}


def test_a_template_above_the_limit_is_not_read() -> None:
    assert values("n.yaml", {"network": "x"}, {"n.yaml": MAKES}, most=len(MAKES)) == {"Subnet": ["x"]}
    assert values("n.yaml", {"network": "x"}, {"n.yaml": MAKES}, most=len(MAKES) - 1) == {}
    assert values("n.yaml", {"network": "x"}, {"n.yaml": MAKES}, most=1) == {}


def steps(*, characters: int = 0, registry: int = 0, times: int = 1, text: str = MAKES) -> int:
    """Return the steps of work of reading a template as often, of so many characters more."""
    budget = Budget()
    contents = contents_of({"n.yaml": text + " " * characters}, budget=budget)
    definition = ResourceDefinition("n", "n.yaml", "n.yaml", {}, template="n.yaml")
    environment = Environment(registry={"X": "y" * registry} if registry else {})
    for _ in range(times):
        contents.values(definition, environment)
    return budget.steps


def test_the_reading_of_templates_is_charged_by_their_length_once() -> None:
    """The numbers change with the search: one step for 500 characters, and YAML's for the text itself."""
    assert (steps(times=2) - steps(), steps(characters=5000, times=2) - steps(characters=5000)) == (1, 1)
    once = steps(registry=5000, times=2) - steps(registry=5000)
    assert steps(registry=10_000, times=2) - steps(registry=10_000) - once == 10
    assert steps(characters=100_000) - steps() == 2200
    long, short = (template(s={"type": "Subnet", "properties": ["x"] * count}) for count in (200, 100))
    assert steps(text=long) - steps(text=short) == 111
    assert steps(text=template(s={"type": "Net"}), characters=100_000) == 201, "it names no type that counts"
