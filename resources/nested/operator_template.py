"""Types that an operator has made of templates, for those who ask which types there are."""

from collections.abc import Mapping

from ...shapes import JsonMap
from ...template.compile import describe
from ...template.load import load_template
from ..contract import Attribute, Property, PropertyType, SupportStatus
from .provider import ProviderTemplate

_TYPES: Mapping[str, PropertyType] = {
    "Number": "number",
    "Json": "map",
    "CommaDelimitedList": "list",
    "Boolean": "boolean",
}
"""Types of properties by those of parameters; all others are texts."""


def template_type(text: str) -> ProviderTemplate:
    """Return the type whose resources are stacks of a template: its parameters are the properties.

    :param text: the template, which was checked.
    """
    template = load_template(text)
    described: JsonMap = describe(template)
    properties = {
        name: Property(
            _TYPES.get(schema["Type"], "string"),
            str(schema.get("Description") or ""),
            required="Default" not in schema,
            update_allowed=True,
            sensitive=str(schema.get("NoEcho")).lower() == "true",
        )
        for name, schema in described["Parameters"].items()
    }
    outputs = template.get("outputs") or {}
    attributes = {
        name: Attribute(str((body or {}).get("description") or "")) for name, body in outputs.items()
    }
    members = {
        "description": described["Description"],
        "properties_schema": properties,
        "attributes_schema": attributes,
        "support_status": SupportStatus(),
    }
    template_class: ProviderTemplate = type("OperatorTemplate", (ProviderTemplate,), members)()
    return template_class
