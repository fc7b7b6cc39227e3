"""Examples of resource types: the shortest of those that the tests run, or the least that a type takes."""

import functools
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping

import yaml
from stoker.resources.plugin import ResourceType
from stoker.resources.schema import Property
from stoker.template.constraints import AllowedValues, Custom, Length, Range
from type_samples import BY_CHECK, BY_SIDE, BY_TYPE

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("examples", "tests/cloud/templates")
"""Folders of templates that tests run on a cloud."""
MEMBERS = ("resource", "resource_def")
"""Properties of groups that have the definition of a resource."""
TEXT = "text"
_BETWEEN_WORDS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class TypeExample(typing.NamedTuple):
    """An example.

    :ivar resources: definitions by name: that of the type, and those to which it refers.
    :ivar source: path of the template that has it; empty: it was made from the type's schema.
    """

    resources: Mapping[str, Json]
    source: str = ""

    def lines(self) -> list[str]:
        """Return the example as a part of a template."""
        document = {"resources": dict(self.resources)}
        return yaml.safe_dump(document, sort_keys=False, width=100).splitlines()


def example_of(name: str, declared: type[ResourceType]) -> TypeExample:
    """Return the example of a type."""
    return _run_examples().get(name) or least(name, declared)


def least(name: str, declared: type[ResourceType]) -> TypeExample:
    """Return the definition with what a type requires, and with samples of what its own checks want."""
    own_name = _BETWEEN_WORDS.sub("_", name.rpartition("::")[2]).lower()
    properties = {**_members(declared.properties_schema), **BY_TYPE.get(name, {})}
    definition = {"type": name, **({"properties": properties} if properties else {})}
    return TypeExample({**BY_SIDE.get(name, {}), own_name: definition})


def _members(schema: Mapping[str, Property]) -> Json:
    required = {name: prop for name, prop in schema.items() if prop.required and prop.alias_of is None}
    return {name: sample(name, prop) for name, prop in required.items()}


def sample(name: str, prop: Property) -> Json:
    """Return a value that satisfies the constraints of a property.

    :param name: the property's.
    """
    for constraint in prop.constraints:
        match constraint:
            case AllowedValues():
                return constraint.values[0]
            case Custom():
                return BY_CHECK.get(constraint.check_name) or f"my-{constraint.check_name.rpartition('.')[2]}"
            case Range() if prop.type in ("integer", "number"):
                return next((v for v in (constraint.minimum, constraint.maximum) if v is not None), 1)
    return _plain(name, prop)


def _plain(name: str, prop: Property) -> Json:
    match prop.type, prop.schema:
        case "map", None:
            return {"key": "value"}
        case "map", members:
            return _members(typing.cast("Mapping[str, Property]", members))
        case "list", None:
            return [TEXT]
        case "list", item:
            return [sample(name, typing.cast(Property, item))]
        case "boolean", _:
            return True
        case (("integer" | "number"), _):
            return 1
    least_length = max((c.minimum or 0 for c in prop.constraints if isinstance(c, Length)), default=0)
    return f"my-{name.replace('_', '-')}".ljust(least_length, "x")


@functools.cache
def _run_examples() -> Mapping[str, TypeExample]:
    """Return the shortest definition of each type in the templates that tests run."""
    shortest: dict[str, TypeExample] = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.yaml")):
        template = yaml.safe_load(path.read_text())
        if "heat_template_version" not in template:
            continue
        for name, definition in _definitions(template.get("resources") or {}):
            example = TypeExample({name: definition}, str(path.relative_to(ROOT)))
            present = shortest.get(definition["type"])
            if "properties" in definition and (present is None or _size(example) < _size(present)):
                shortest[definition["type"]] = example
    return shortest


def _definitions(resources: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield all definitions by name, those of groups' members, too."""
    for name, definition in resources.items():
        yield name, definition
        properties = definition.get("properties") or {}
        for member in MEMBERS:
            if isinstance(inner := properties.get(member), Mapping) and "type" in inner:
                yield "member", inner


def _size(example: TypeExample) -> int:
    return len("\n".join(example.lines()))
