"""How a resource type declares its properties and attributes; properties.py applies it to values.

A properties schema is a mapping from name to `Property`, an attributes schema from name to `Attribute`.  The
name ``*`` (`ANY_NAME`) stands for all names that are not listed.
"""

import functools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...shapes import Json
from ...template.constraints import Constraint, Custom
from ...template.custom_checks import OF_CLOUD

PropertyType = typing.Literal["string", "integer", "number", "boolean", "map", "list", "any"]
ANY_NAME = "*"


@dataclass(frozen=True)
class SupportStatus:
    """The support status of a type, property or attribute, as in Heat.

    :ivar status: ``SUPPORTED``, ``DEPRECATED``, ``UNSUPPORTED`` or ``HIDDEN`` (works but is not listed).
    :ivar version: OpenStack version that brought it; None: unknown.
    """

    status: str = "SUPPORTED"
    version: str | None = None
    message: str | None = None
    previous: "SupportStatus | None" = None

    @property
    def hidden(self) -> bool:
        """True if the API does not list it."""
        return self.status == "HIDDEN"

    def to_json(self) -> dict[str, Json]:
        """Return the status as the API shows it."""
        return {
            "status": self.status,
            "message": self.message,
            "version": self.version,
            "previous_status": self.previous.to_json() if self.previous else None,
        }


SUPPORTED = SupportStatus()
WITHOUT_EFFECT = SupportStatus("HIDDEN", message="It is accepted for older templates, and has no effect.")


@dataclass(frozen=True)
class Property:
    """A property.

    :ivar default: the value if no value, or null, is given; None: there is no default.
    :ivar required: a value must be given; it may be null.
    :ivar update_allowed: a change is made by an update; otherwise the resource is replaced.
    :ivar immutable: a change is refused.
    :ivar schema: the schema of a list's items (a Property), or of a map's members (a mapping).
    :ivar sensitive: never shown in messages.
    :ivar alias_of: the property of which this is an older name: a value of this one is a value of that one.
    :ivar default_option: the option of the configuration that has another default; "": there is no option.
    :ivar empty: the meaning of an empty text, list or map: ``omitted``: as if the property were not given, so
        a creation does not send it and no update sees a difference; ``sent``: a value like others.  "":
        omitted for a text that is not required, sent for all others.
    :ivar names: the kind of thing that the value names, by name or id; "": that of its custom constraint.
    :raises ValueError: the parts contradict each other (an error in the resource type).
    """

    type: PropertyType
    description: str = ""
    default: Json = None
    required: bool = False
    update_allowed: bool = False
    immutable: bool = False
    constraints: Sequence[Constraint] = ()
    schema: "Mapping[str, Property] | Property | None" = None
    sensitive: bool = False
    support_status: SupportStatus = SUPPORTED
    alias_of: str | None = None
    default_option: str = ""
    names: str = ""
    empty: typing.Literal["", "omitted", "sent"] = ""

    def __post_init__(self) -> None:
        if self.type not in typing.get_args(PropertyType):
            raise ValueError(f"{self.type} is not a type of a property")
        if self.update_allowed and self.immutable:
            raise ValueError("A property that allows updates cannot be immutable")
        needed = {"list": Property, "map": Mapping}.get(self.type)
        if self.schema is not None and (needed is None or not isinstance(self.schema, needed)):
            raise ValueError(f"A property of type {self.type} cannot have this schema")
        misfits = [constraint.name for constraint in self.constraints if self.type not in constraint.types]
        if misfits:
            raise ValueError(f"{misfits[0]} does not fit a property of type {self.type}")

    @functools.cached_property
    def omits_empty(self) -> bool:
        """Return whether an empty value means that the property is not given."""
        return self.empty == "omitted" or (not self.empty and self.type == "string" and not self.required)

    @property
    def kind(self) -> str:
        """Return the kind of thing in a cloud that the value names; "": it names none."""
        checks = (item.check_name for item in self.constraints if isinstance(item, Custom))
        return self.names or next((name for name in checks if name in OF_CLOUD), "")


@dataclass(frozen=True)
class Attribute:
    """An attribute.

    :ivar type: type of the value as of a property, for display; None: any.
    :ivar sensitive: the value is a secret: it is stored sealed and never logged.  The same holds for the
        `data` of the resource, and for its reference if that is the same value.
    :ivar from_property: the property whose value, perhaps converted, the attribute returns; the attribute is
        a secret if the property holds one.
    :ivar volatile: the value changes when other resources are created.  If an output of the stack refers to
        it, the type's `refresh` reads it again after all other resources.
    """

    description: str = ""
    type: PropertyType | None = None
    sensitive: bool = False
    support_status: SupportStatus = SUPPORTED
    from_property: str | None = None
    volatile: bool = False


#: Attributes that every type has, as in Heat.  A type without its own value yields None.
BASE_ATTRIBUTES: Mapping[str, Attribute] = {
    "show": Attribute("All fields, as the service's API returns them.", "map", volatile=True),
}


def has_attribute(schema: Mapping[str, Attribute], name: str) -> bool:
    """Return whether ``get_attr`` may use the attribute."""
    return name in schema or name in BASE_ATTRIBUTES or ANY_NAME in schema


def is_volatile(schema: Mapping[str, Attribute], name: str) -> bool:
    """Return whether the attribute changes when other resources are made; "": whether any does."""
    if name == "":
        return any(attribute.volatile for attribute in schema.values())
    attributes = [schema[key] for key in (name, ANY_NAME) if key in schema][:1]
    attributes += [BASE_ATTRIBUTES[name]] if name in BASE_ATTRIBUTES else []
    return any(attribute.volatile for attribute in attributes)
