"""Templates that are mapped to a type which is a class, too: they have to fit it, as in Heat; pure."""

import typing
from collections.abc import Mapping

from ..resources.plugin import ResourceType
from ..resources.schema import ANY_NAME
from ..template.environment import Environment
from ..template.errors import FacadeMismatch

Json = typing.Any
_PROPERTY_TYPES = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "list",
    "Json": "map",
    "Boolean": "boolean",
}
"""Types of properties by those of the parameters that take their values."""


def check_facade(
    type_name: str,
    facade: ResourceType,
    described: Mapping[str, Json],
    outputs: Json,
    environment: Environment,
) -> None:
    """Check that a template can be in the place of the type that it is mapped to.

    It has the required properties as parameters, of the same types; the attributes as outputs; and no other
    parameter that needs a value.

    :param facade: the class of that type.
    :param described: the template's parameters, as `describe` returns them.
    :param outputs: section of the template.
    :param environment: of the nested stack.
    :raises FacadeMismatch: in Heat's words.
    """
    schema = facade.properties_schema
    if ANY_NAME in schema:
        return
    for name, prop in schema.items():
        if name not in described:
            if prop.required:
                text = f"Required property {name} for facade {type_name} missing in provider"
                raise FacadeMismatch(text)
            continue
        provided = _PROPERTY_TYPES[described[name]["Type"]]
        wanted = "number" if prop.type == "integer" else prop.type
        if wanted not in ("any", provided):
            raise FacadeMismatch(
                f"Property {name} type mismatch between facade {type_name} ({prop.type.capitalize()}) "
                f"and provider ({provided.capitalize()})"
            )
    defaults = environment.defaults
    for name, declared in described.items():
        if name not in schema and "Default" not in declared and name not in defaults:
            raise FacadeMismatch(f"Provider requires property {name} unknown in facade {type_name}")
    known = outputs if isinstance(outputs, Mapping) else {}
    for name in facade.attributes_schema:
        if name != ANY_NAME and name not in known:
            raise FacadeMismatch(f"Attribute {name} for facade {type_name} missing in provider")
