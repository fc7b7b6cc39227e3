"""OS::Heat::Stack: a stack whose template is a property."""

from collections.abc import Mapping

from ...template.language import ResourceDefinition
from ..context import ChildGoal, Json, ResourceView, StepContext
from ..errors import PropertyError
from ..nested.base import NestedType
from ..schema import ANY_NAME, Attribute, Property, SupportStatus


class StackResource(NestedType):
    """A nested stack in the same region and with the same credentials; others are refused."""

    has_member_attributes = True
    shows_resources = True
    description = (
        "A stack of its own inside of this one.\n\n"
        "Its template, parameters and timeout are properties; its outputs are attributes."
    )
    support_status = SupportStatus(version="2014.2")
    properties_schema = {
        "template": Property(
            "string", "The template, as a text: mostly by get_file.", required=True, update_allowed=True
        ),
        "parameters": Property("map", "Values for its parameters.", default={}, update_allowed=True),
        "timeout": Property("integer", "Minutes that each of its actions may take.", update_allowed=True),
        "context": Property(
            "map",
            "Where and as whom the stack is created.",
            schema={
                "region_name": Property("string", "Name of a region."),
                "credential_secret_id": Property("string", "Id of a secret with credentials."),
                "ca_cert": Property("string", "Certificate of the authority that signed the region's."),
                "insecure": Property("boolean", "Whether certificates are not verified.", default=False),
            },
        ),
    }
    attributes_schema = {
        ANY_NAME: Attribute("An output."),
        "stack_name": Attribute("The stack's name.", "string"),
        "outputs": Attribute("All outputs.", "map"),
    }
    _own_region: str | None = None

    def configure(self, values: Mapping[str, Json]) -> None:
        """Take the name of the own region."""
        self._own_region = values.get("region_name")

    def validate(self, properties: Mapping[str, Json]) -> None:
        """Refuse another region and other credentials, in Heat's words.

        A stack in the own region is made without a request, so certificates do not matter.

        :raises PropertyError: the context has one.
        """
        context = properties.get("context") or {}
        region = context.get("region_name")
        if context.get("credential_secret_id"):
            path, place, reason = "credential_secret_id", "remote cloud", "other credentials"
        elif region and region != self._own_region:
            path, place, reason = "region_name", f'region "{region:.255}"', "stacks in other regions"
        else:
            return
        own = f"the own region is {self._own_region}" if self._own_region else "no own region is configured"
        text = f'at {place} due to "{reason} are not supported; {own}"'
        raise PropertyError(f"Cannot establish connection to Heat endpoint {text}", ("context", path))

    def static_goal(self, known: Mapping[str, Json], definition: ResourceDefinition) -> ChildGoal | None:
        """Return the goal if the template and the parameters are known."""
        if "template" not in known or "parameters" not in known:
            return None
        return ChildGoal(known["template"], known["parameters"] or {})

    def child_goal(self, target: ResourceView, work: StepContext) -> ChildGoal:
        """Return the goal that the properties describe."""
        minutes = target.properties["timeout"]
        return ChildGoal(
            target.properties["template"],
            target.properties["parameters"] or {},
            timeout=None if not minutes else minutes * 60.0,
        )

    def attribute_values(self, target: ResourceView) -> Mapping[str, Json]:
        """Return the outputs, and the stack's name."""
        return {**super().attribute_values(target), "stack_name": target.data.get("name")}
