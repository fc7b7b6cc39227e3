"""Ids that a template brings name nothing that Stoker itself stores."""

from stoker.engine.planning.template_check import check_types
from stoker.resources.nested.base import NestedType
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.stored import StoredLookup
from stoker.template.budget import Budget
from stoker.template.errors import TemplateError
from stoker.template.language import CompiledTemplate, ResourceDefinition

REGISTRY = ResourceRegistry.installed()
STORED_HERE = {
    *(f"OS::Heat::{kind}Config" for kind in ("Software", "Structured", "Cloud")),
    *(f"OS::Heat::{kind}Deployment" for kind in ("Software", "Structured")),
    *("OS::Heat::SoftwareComponent", "OS::Heat::MultipartMime"),
    *("OS::Heat::WaitConditionHandle", "OS::Heat::UpdateWaitConditionHandle"),
    *("AWS::CloudFormation::WaitConditionHandle", "AWS::IAM::User", "AWS::IAM::AccessKey"),
    *("OS::Heat::ScalingPolicy", "AWS::AutoScaling::ScalingPolicy"),
}
"""Types, besides those of nested stacks, whose things are rows of Stoker's own."""


def refusal(type_name: str) -> str:
    """The error of a template that names a thing of this type by its id; "": it is taken."""
    definition = ResourceDefinition("r", type_name, type_name, external_id="theirs")
    plan = CompiledTemplate("2021-04-16", "", parameters={}, resources={"r": definition}, outputs={})
    try:
        check_types(plan, REGISTRY, StoredLookup({}.__getitem__), Budget())
    except TemplateError as error:
        return str(error)
    return ""


def test_external_id_names_nothing_that_stoker_itself_stores() -> None:
    templates = {name for name in REGISTRY.names() if REGISTRY.get(name).variant_of is None}
    nested = {name for name in templates if isinstance(REGISTRY.get(name), NestedType)}
    refused = {name for name in templates if "external_id" in refusal(name)}
    assert refused == nested | STORED_HERE
    assert refusal("OS::Heat::SoftwareConfig") == (
        "resources.r.external_id: OS::Heat::SoftwareConfig belongs to the stack that makes it, as Stoker "
        "itself stores it: it cannot be named by external_id"
    )


def test_things_of_the_cloud_are_named_by_external_id() -> None:
    assert refusal("OS::Neutron::Net") == refusal("OS::Nova::Server") == ""
