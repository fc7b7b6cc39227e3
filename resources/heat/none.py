"""OS::Heat::None: takes any properties and does nothing."""

import uuid

from ...shapes import JsonMap
from ..contract import (
    ANY_NAME,
    Attribute,
    Done,
    Property,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)


class NoneResource(ResourceType):
    """Replaces a type that the environment maps to it; each of its attributes is None."""

    type_name = "OS::Heat::None"
    description = (
        "A placeholder for a type that the environment's resource_registry switches off.\n\n"
        "It takes any properties, makes nothing, has None for each attribute and is never replaced."
    )
    support_status = SupportStatus(version="5.0.0")
    properties_schema = {
        ANY_NAME: Property("any", "Property of the replaced type; without effect.", update_allowed=True)
    }
    attributes_schema = {ANY_NAME: Attribute("Attribute of the replaced type; always null.")}

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Return an id made from the key: the same for every repetition."""
        physical_id = uuid.uuid5(uuid.NAMESPACE_OID, target.key)
        return Done(physical_id=str(physical_id), data={"is_placeholder": "True"})

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return no attribute, so each is None."""
        return {}
