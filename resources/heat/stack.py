"""OS::Heat::Stack and AWS::CloudFormation::Stack: their template, or its address, is a property."""

from collections.abc import Mapping

from ...shapes import Json, JsonMap
from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import (
    ANY_NAME,
    NOT_KNOWN,
    Attribute,
    ChildGoal,
    ChildState,
    GoalContext,
    Property,
    ResourceView,
    SupportStatus,
)
from ..nested.base import OUTPUT_ERRORS, NestedType

OUTPUTS = "Outputs."
"""Beginning of the attributes of CloudFormation's nested stacks."""
REMOTE_STACK = "OS::Heat::Stack#remote"
"""Name of the type of the stacks in another region or cloud: resources/openstack/heat/remote_stack.py."""
CONTEXT = {
    "region_name": Property("string", "Region name; another region makes it a remote stack."),
    "credential_secret_id": Property(
        "string",
        'Id of a Barbican secret with a credential for another cloud or project: JSON, e.g. {"auth_type": '
        '"v3applicationcredential", "auth": {"auth_url": …}}.',
        update_allowed=True,
        support_status=SupportStatus(version="12.0.0"),
    ),
    "ca_cert": Property(
        "string",
        "CA certificates of the remote region or cloud, in PEM format.",
        update_allowed=True,
        support_status=SupportStatus(version="12.0.0"),
    ),
    "insecure": Property(
        "boolean",
        "TLS verification: true disables it for the remote region or cloud.",
        default=False,
        update_allowed=True,
        support_status=SupportStatus(version="12.0.0"),
    ),
}
PROPERTIES = {
    "template": Property(
        "string", "Template, as text; usually from get_file.", required=True, update_allowed=True
    ),
    "parameters": Property("map", "Parameter values.", default={}, update_allowed=True),
    "timeout": Property("integer", "Timeout of each action, in minutes.", update_allowed=True),
    "context": Property(
        "map", "Context: region, cloud and credential of the stack.", schema=CONTEXT, update_allowed=True
    ),
}
ATTRIBUTES = {
    ANY_NAME: Attribute("Output of this name."),
    "stack_name": Attribute("Name of the stack.", "string"),
    "outputs": Attribute("All outputs.", "map"),
}


class StackResource(NestedType):
    """A nested stack in the own region, or by its variant a stack in another region or cloud."""

    type_name = "OS::Heat::Stack"
    has_member_attributes = True
    shows_resources = True
    description = (
        "A nested stack, or a stack in another region or cloud.\n\n"
        "Its template, parameters and timeout are properties; its outputs are attributes."
    )
    support_status = SupportStatus(version="2014.2")
    properties_schema = PROPERTIES
    attributes_schema = ATTRIBUTES
    chosen_by = "context"
    _own_region: str | None = None

    def configure(self, values: JsonMap) -> None:
        """Take the name of the own region."""
        self._own_region = values.get("region_name")

    def variant(self, chosen_by: Json) -> str | None:
        """Return `REMOTE_STACK` for another region, or for other credentials.

        What is not known yet may be another region: requests reach the own one, too.
        """
        if chosen_by is NOT_KNOWN:
            return REMOTE_STACK
        context = chosen_by if isinstance(chosen_by, Mapping) else {}
        region = context.get("region_name")
        elsewhere = region not in (None, "", self._own_region)
        return REMOTE_STACK if elsewhere or context.get("credential_secret_id") else None

    def static_goal(self, values: JsonMap, definition: ResourceDefinition) -> ChildGoal | None:
        """Return the goal if the template and the names of the parameters are known."""
        properties = {**definition.properties, **values}
        parameters = properties.get("parameters") or {}
        if "template" not in values or is_node(parameters) or not isinstance(parameters, Mapping):
            return None
        return ChildGoal(values["template"], parameters)

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        properties = target.properties
        return _goal(properties["template"], properties["parameters"], properties["timeout"])

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the outputs, and the stack's name."""
        return {**super().attribute_values(target), "stack_name": target.data.get("name")}


class AwsStack(NestedType):
    """The nested stack of CloudFormation templates."""

    type_name = "AWS::CloudFormation::Stack"
    description = (
        "A nested stack with a template from a URL.\n\n"
        "Its template is fetched from its address with each create and update; its outputs are attributes."
    )
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "TemplateURL": Property(
            "string",
            "URL of the template, with HTTPS, on a host that the operator allows.",
            required=True,
            update_allowed=True,
        ),
        "Parameters": Property("map", "Parameter values.", update_allowed=True),
        "TimeoutInMinutes": Property("integer", "Timeout of each action, in minutes.", update_allowed=True),
    }
    attributes_schema = {ANY_NAME: Attribute("Output, as Outputs.NAME.")}

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        """Return the goal that the properties describe, with the template as it is now.

        :raises PermanentError: the template cannot be fetched.
        """
        properties = target.properties
        return _goal(
            context.children.template(properties["TemplateURL"]),
            properties["Parameters"],
            properties["TimeoutInMinutes"],
        )

    def child_data(self, target: ResourceView, state: ChildState, context: GoalContext) -> JsonMap:
        """Name the outputs that can never be computed as the attributes are named."""
        data = super().child_data(target, state, context)
        errors = {f"{OUTPUTS}{name}": text for name, text in data.get(OUTPUT_ERRORS, {}).items()}
        return {**data, OUTPUT_ERRORS: errors} if errors else data

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {f"{OUTPUTS}{name}": value for name, value in (target.data.get("outputs") or {}).items()}


def _goal(template: Json, parameters: JsonMap | None, minutes: int | None) -> ChildGoal:
    return ChildGoal(template, parameters or {}, timeout=None if not minutes else minutes * 60.0)
