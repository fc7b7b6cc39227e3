"""OS::Heat::Value: returns a value, converted to a type."""

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues
from ..contract import Attribute, Done, Property, ResourceType, ResourceView, Step, StepContext, SupportStatus
from ..contract.properties import resolve_properties

#: The types of parameters, and which type of property each is.
TYPES = {
    "string": Property("string"),
    "number": Property("number"),
    "comma_delimited_list": Property("list"),
    "json": Property("map"),
    "boolean": Property("boolean"),
}


class Value(ResourceType):
    """A value whose attribute is its property; see the description."""

    type_name = "OS::Heat::Value"
    description = (
        "A named value.\n\n"
        "So an expression over parameters and other resources gets a name, and is written once."
    )
    support_status = SupportStatus(version="7.0.0")
    properties_schema = {
        "value": Property("any", "Value.", required=True, update_allowed=True),
        "type": Property(
            "string",
            "Data type to convert the value to, by the names of parameter types; by default unchanged.",
            constraints=(AllowedValues(values=tuple(TYPES)),),
            update_allowed=True,
        ),
    }
    attributes_schema = {
        "value": Attribute(
            "Value, converted to the data type.",
            # A converted secret cannot be recognised by its value.
            from_property="value",
        )
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the value against the type.

        :raises PropertyError: the value does not fit.
        """
        if "value" in properties and "type" in properties:
            _converted(properties)

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Return a name; nothing else is created."""
        return Done(physical_id=target.physical_name)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        return {"value": _converted(target.properties)}


def _converted(properties: JsonMap) -> Json:
    """Return the value, converted.

    :raises PropertyError: the value does not fit the type.
    """
    value_type = properties["type"]
    if value_type is None:
        return properties["value"]
    return resolve_properties({"value": TYPES[value_type]}, {"value": properties["value"]})["value"]
