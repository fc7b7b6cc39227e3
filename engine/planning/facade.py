"""Templates in the place of another type or template, which they have to fit, as in Heat; pure."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from ...resources.contract.plugin import ResourceType
from ...resources.contract.schema import ANY_NAME
from ...shapes import JsonMap
from ...template.environment import Environment
from ...template.errors import FacadeMismatch

_PROPERTY_TYPES = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "list",
    "Json": "map",
    "Boolean": "boolean",
}
"""Types of properties by those of the parameters that take their values."""


@dataclass(frozen=True)
class Facade:
    """A type that templates may take the place of.

    :ivar properties: their types by name.
    :ivar required: names of the properties that need a value.
    :ivar attributes: the names of its attributes.
    :ivar takes_anything: the type has no fixed properties, so nothing can be checked.
    """

    properties: Mapping[str, str]
    required: Set[str]
    attributes: Iterable[str]
    takes_anything: bool = False

    @classmethod
    def of_type(cls, plugin: ResourceType) -> "Facade":
        """Return the facade of a type that is a class."""
        schema = plugin.properties_schema
        return cls(
            properties={name: prop.type for name, prop in schema.items()},
            required={name for name, prop in schema.items() if prop.required},
            attributes=[name for name in plugin.attributes_schema if name != ANY_NAME],
            takes_anything=ANY_NAME in schema,
        )

    @classmethod
    def of_template(cls, described: JsonMap, outputs: object, environment: Environment) -> "Facade":
        """Return the facade of a template; see check_facade for the parameters."""
        return cls(
            properties={name: _PROPERTY_TYPES[item["Type"]] for name, item in described.items()},
            required=_required(described, environment),
            attributes=list(outputs) if isinstance(outputs, Mapping) else (),
        )


def _required(described: JsonMap, environment: Environment) -> set[str]:
    defaults = environment.defaults
    return {name for name, item in described.items() if "Default" not in item and name not in defaults}


def check_facade(
    type_name: str,
    facade: Facade,
    described: JsonMap,
    outputs: object,
    environment: Environment,
) -> None:
    """Check that a template can be in the place of the type that it is mapped to.

    It has the required properties as parameters, of the same types; the attributes as outputs; and no other
    parameter that needs a value.

    :param facade: the facade of that type.
    :param described: the template's parameters, as `describe` returns them.
    :param outputs: the section of the template.
    :param environment: the environment of the nested stack.
    :raises FacadeMismatch: the template does not fit; in Heat's words.
    """
    if facade.takes_anything:
        return
    for name, kind in facade.properties.items():
        if name not in described:
            if name in facade.required:
                text = f"Required property {name} for facade {type_name} missing in provider"
                raise FacadeMismatch(text)
            continue
        provided = _PROPERTY_TYPES[described[name]["Type"]]
        expected = "number" if kind == "integer" else kind
        if expected not in ("any", provided):
            raise FacadeMismatch(
                f"Property {name} type mismatch between facade {type_name} ({kind.capitalize()}) "
                f"and provider ({provided.capitalize()})"
            )
    for name in described:
        if name not in facade.properties and name in _required(described, environment):
            raise FacadeMismatch(f"Provider requires property {name} unknown in facade {type_name}")
    provided_attributes = outputs if isinstance(outputs, Mapping) else {}
    for name in facade.attributes:
        if name not in provided_attributes:
            raise FacadeMismatch(f"Attribute {name} for facade {type_name} missing in provider")
