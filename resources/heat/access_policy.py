"""OS::Heat::AccessPolicy: resources that users of AWS::IAM::User may read."""

from collections.abc import Mapping

from ...template.language import ResourceDefinition
from ...template.residual import is_node
from ..contract import (
    Done,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)


class AccessPolicy(ResourceType):
    """Names of resources of the same stack; nothing is made of them."""

    type_name = "OS::Heat::AccessPolicy"
    description = "An access policy: the resources whose metadata a user of the CloudFormation API may read."
    has_rules_in_stack = True
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "AllowedResources": Property(
            "list", "Names of the resources of the stack that may be read.", required=True
        ),
    }

    def validate_in_stack(
        self, definition: ResourceDefinition, others: Mapping[str, ResourceDefinition]
    ) -> None:
        """Check that the stack has the resources.

        :raises PropertyError: the stack lacks one.
        """
        if is_node(definition.properties):
            return
        names = definition.properties.get("AllowedResources")
        for index, name in enumerate(names if isinstance(names, list) else ()):
            if isinstance(name, str) and name not in others:
                text = f"AccessPolicy resource {name} not in stack"
                raise PropertyError(text, ("AllowedResources", index))

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Return Done: nothing is there that could be adopted."""
        return Done()
