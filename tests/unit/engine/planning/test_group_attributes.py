"""Attributes of groups that read their members', and resources that outputs read behind all others."""

import typing

import pytest
from stoker.engine.planning.group_attributes import refreshed_for, with_requested_attributes
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import ANY_NAME, Attribute
from stoker.resources.registry import ResourceRegistry
from stoker.template.errors import TemplateError, UnknownAttribute
from stoker.template.language import CompiledTemplate, OutputDefinition, Reference, ResourceDefinition
from stoker.template.residual import is_failing, node, references

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
GROUP = "OS::Heat::ResourceGroup"


def attribute(*args: Json) -> Json:
    return node("get_attr", *args)


def rewritten(
    value: Json, version: str = "2018-08-31", *, group: str = GROUP, **where: Json
) -> CompiledTemplate:
    kinds = {"g": group, "t": "OS::Heat::RandomString", "r": "OS::Heat::Value"}
    resources = {name: ResourceDefinition(name, kind, kind) for name, kind in kinds.items()}
    resources["r"] = ResourceDefinition(
        "r", kinds["r"], kinds["r"], **{"properties": {"value": value}, **where}
    )
    outputs = {"o": OutputDefinition("", where.get("output"), references=())} if "output" in where else {}
    plan = CompiledTemplate(version, "", parameters={}, resources=resources, outputs=outputs)
    return with_requested_attributes(plan, {name: REGISTRY.get(kind) for name, kind in kinds.items()})


@pytest.mark.parametrize(
    ("args", "version", "read", "requested"),
    [
        (("g", "value"), "2018-08-31", ("g", "value"), [("value",)]),
        (("g", "value", 0), "2018-08-31", ("g", "value, 0"), [("value", 0)]),
        (("g", "value", "k", 1), "2014-10-16", ("g", "value, k, 1"), [("value", "k", 1)]),
        (("g", "value", 0), "2013-05-23", ("g", "value", 0), [("value",)]),
        (("g", "refs"), "2018-08-31", ("g", "refs"), []),
        (("g", "refs", 0), "2018-08-31", ("g", "refs", 0), []),
        (("g", ""), "2018-08-31", ("g", ""), []),
        (("t", "value", 0), "2018-08-31", ("t", "value", 0), []),
    ],
)
def test_the_path_of_an_attribute_is_requested_of_each_member(
    args: Json, version: str, read: Json, requested: Json
) -> None:
    plan = rewritten([attribute(*args)], version)
    resource = plan.resources["r"]
    assert resource.properties == {"value": [attribute(*read)]}
    assert resource.references == references([attribute(*read)])
    assert list(plan.resources["g"].requested_attributes) == requested


def test_attributes_are_found_in_all_parts_and_inside_functions() -> None:
    value = node(
        "literal", {"$fn": 1, "v": attribute("g", "b"), "w": node("list_join", [attribute("g", "a", 1)])}
    )
    plan = rewritten(value)
    joined = node("list_join", [attribute("g", "a, 1")])
    assert plan.resources["r"].properties["value"] == node(
        "literal", {"$fn": 1, "v": attribute("g", "b"), "w": joined}
    )
    assert plan.resources["g"].requested_attributes == (("a", 1), ("b",))


@pytest.mark.parametrize("group", ["OS::Heat::Value", "AWS::CloudFormation::Stack"])
def test_a_template_without_groups_stays_as_it_is(group: str) -> None:
    value = [attribute("g", "value", 0), attribute("g", "resource.a", "b")]
    plan = rewritten(value, group=group)
    assert plan.resources["r"].properties == {"value": value}
    assert plan.resources["g"].requested_attributes == ()


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (
            ("g", "attributes"),
            UnknownAttribute,
            r"The Referenced Attribute \(g attributes\) is incorrect. attributes ",
        ),
        (("g", "value", attribute("t", "value")), TemplateError, "read from the members of g must be known"),
        (("g", "value", 0, attribute("t", "value")), TemplateError, "must be known before any resource"),
    ],
)
def test_an_attribute_of_members_that_leads_nowhere_is_refused(
    args: Json, error: type[TemplateError], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        rewritten([attribute(*args)])
    assert refused.value.path == ("resources", "r", "properties", "value", 0)


def test_an_output_of_such_an_attribute_fails_for_who_reads_it() -> None:
    outputs = {
        "o": OutputDefinition("", attribute("g", "attributes")),
        "p": OutputDefinition("", attribute("g", "v")),
    }
    group = ResourceDefinition("g", GROUP, GROUP)
    plan = CompiledTemplate("2018-08-31", "", parameters={}, resources={"g": group}, outputs=outputs)
    found = with_requested_attributes(plan, {"g": REGISTRY.get(GROUP)})
    assert is_failing(found.outputs["o"].value)
    assert not is_failing(found.outputs["p"].value)
    assert found.outputs["p"].references == (Reference("g", "v"),)
    assert found.resources["g"].requested_attributes == (("v",),)


class Fixed(ResourceType):
    attributes_schema: typing.ClassVar = {"changing": Attribute(volatile=True), "same": Attribute()}


class Open(ResourceType):
    attributes_schema: typing.ClassVar = {ANY_NAME: Attribute(volatile=True)}

    def refresh(self, *arguments: Json, **more: Json) -> Json:
        raise NotImplementedError


class Refreshed(Fixed):
    def refresh(self, *arguments: Json, **more: Json) -> Json:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("uses", "names"),
    [
        ([Reference("b", "changing"), Reference("a", "changing")], ("a", "b")),
        ([Reference("a", "same"), Reference("a")], ()),
        ([Reference("open")], ()),
        ([Reference("open", "any")], ("open",)),
        ([Reference("fixed", "changing"), Reference("gone", "changing")], ()),
        ([Reference("a", "same"), Reference("a", "changing"), Reference("a", "changing")], ("a",)),
    ],
)
def test_outputs_that_show_what_others_change_are_read_behind_all(
    uses: list[Reference], names: tuple[str, ...]
) -> None:
    outputs = [OutputDefinition("", None, references=(use,)) for use in uses]
    types = {"a": Refreshed(), "b": Refreshed(), "fixed": Fixed(), "open": Open()}
    assert refreshed_for(outputs, types) == names
