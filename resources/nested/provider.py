"""The type of resources whose type is the name of a template: nested stacks of that template."""

from ...shapes import Json
from ..contract import (
    ANY_NAME,
    Attribute,
    ChildGoal,
    GoalContext,
    Property,
    ResourceView,
    SupportStatus,
)
from .base import NestedType

REFERENCE = "OS::stack_id"
"""Name of the output whose value get_resource returns, as in Heat."""


class ProviderTemplate(NestedType):
    """Its properties are the template's parameters, its attributes the outputs.

    Only the template says which these are; it is among the files of the stack.  See
    engine/planning/nested_check.py.
    """

    has_member_attributes = True
    shows_resources = True
    description = "A stack of a template that is mapped to a type, or named in its place."
    support_status = SupportStatus(status="HIDDEN")
    properties_schema = {ANY_NAME: Property("any", "Parameter of the template.", update_allowed=True)}
    attributes_schema = {
        ANY_NAME: Attribute("Output of the template."),
        "outputs": Attribute("All outputs.", "map"),
    }

    def child_goal(self, target: ResourceView, context: GoalContext) -> ChildGoal:
        """Return the goal: the template of that name, with the properties as parameters."""
        values = {name: value for name, value in target.properties.items() if value is not None}
        return ChildGoal(context.children.file(target.template), values)

    def reference_id(self, target: ResourceView) -> Json:
        """Return the output that the template defines for it, or else the stack's id."""
        outputs = target.data.get("outputs") or {}
        return outputs.get(REFERENCE) or super().reference_id(target)
