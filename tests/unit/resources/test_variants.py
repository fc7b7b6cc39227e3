"""The choice between a nested and a remote stack, made when a template is compiled."""

import typing

import pytest
from stoker.engine.planning.template_check import check_types
from stoker.resources.heat.stack import REMOTE_STACK
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.stored import StoredLookup
from stoker.template.budget import Budget
from stoker.template.errors import TemplateError
from stoker.template.language import CompiledTemplate, ResourceDefinition
from stoker.template.residual import failing, node, sealed

Json = typing.Any
STACK = "OS::Heat::Stack"
SECRETS = {"own": "here", "other": "there"}
REGISTRY = ResourceRegistry.installed(defaults={"region_name": "here"})


def plan_of(properties: Json, type_name: str = STACK) -> CompiledTemplate:
    definition = ResourceDefinition("r", type_name, STACK, properties=properties)
    return CompiledTemplate("2021-04-16", "", parameters={}, resources={"r": definition}, outputs={})


def checked(properties: Json, type_name: str = STACK) -> str:
    """The type that a compiled resource has."""
    secrets = StoredLookup(SECRETS.__getitem__)
    resource = check_types(plan_of(properties, type_name), REGISTRY, secrets, Budget()).resources["r"]
    assert resource.declared_type == STACK
    return resource.type


def chosen(properties: Json, registry: ResourceRegistry = REGISTRY) -> str:
    definition = plan_of(properties).resources["r"]
    return registry.with_variant(definition, StoredLookup(SECRETS.__getitem__), Budget()).type


FROM_OTHER = node("get_attr", "other", "region")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, STACK),
        ({"context": None}, STACK),
        ({"context": {}}, STACK),
        ({"context": {"region_name": "here", "insecure": True}}, STACK),
        ({"context": {"region_name": ""}}, STACK),
        ({"context": {"region_name": sealed("own")}}, STACK),
        ({"context": {"region_name": "here", "ca_cert": FROM_OTHER}}, STACK),
        ({"context": {"region_name": "there"}}, REMOTE_STACK),
        ({"context": {"region_name": sealed("other")}}, REMOTE_STACK),
        ({"context": {"region_name": FROM_OTHER}}, REMOTE_STACK),
        ({"context": {"region_name": failing("no value yet")}}, REMOTE_STACK),
        ({"context": {"region_name": "here", "credential_secret_id": "id"}}, REMOTE_STACK),
        ({"context": {"credential_secret_id": FROM_OTHER}}, REMOTE_STACK),
        ({"context": FROM_OTHER}, REMOTE_STACK),
        (node("get_attr", "other", "properties"), REMOTE_STACK),
        ({"context": "wrong"}, STACK),  # The schema refuses it.
    ],
)
def test_a_region_or_a_credential_makes_a_remote_stack(properties: Json, expected: str) -> None:
    assert chosen(properties) == expected


def test_without_a_known_region_every_named_one_is_another() -> None:
    assert chosen({"context": {"region_name": "here"}}, registry=ResourceRegistry.installed()) == REMOTE_STACK


def test_the_choice_is_made_when_a_template_is_compiled() -> None:
    template = {"template": "a template"}
    assert checked({**template, "context": {"region_name": "there"}}) == REMOTE_STACK
    assert checked({**template, "context": {"region_name": "here"}}) == STACK
    assert checked({}, "OS::Heat::None") == "OS::Heat::None"


def test_no_template_names_a_variant() -> None:
    with pytest.raises(TemplateError, match="could not be found"):
        checked({"template": "a template"}, REMOTE_STACK)
    assert REMOTE_STACK not in REGISTRY.names()


def test_the_template_of_a_remote_stack_is_no_secret() -> None:
    """The other service stores and shows it."""
    with pytest.raises(TemplateError, match="must not contain the value of a hidden parameter"):
        checked({"template": sealed("own"), "context": {"region_name": "there"}})
