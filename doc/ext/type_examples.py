"""Examples of resource types: the shortest of those that the tests run, or the least that a type takes."""

import functools
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping

import yaml
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.schema import Property
from stoker.template.constraints import AllowedValues, Custom, Length, Range
from type_samples import BY_CHECK, BY_TYPE

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("tests/cloud/types", "examples", "tests/cloud/templates")
"""Folders of templates that tests run, on a cloud where they need one; those written as examples first."""
MEMBERS = ("resource", "resource_def")
"""Properties of groups that have the definition of a resource."""
TEXT = "text"
LAST = (True, len(FOLDERS), 0)
"""The rank behind those of all examples."""
_BETWEEN_WORDS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Dumper(yaml.SafeDumper):
    """Writes each value where it is, without aliases."""

    def ignore_aliases(self, data: Json) -> bool:
        return True


def _lines_as_written(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Write the text of a script line by line."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _lines_as_written)


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
        return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100).splitlines()


def example_of(name: str, declared: type[ResourceType]) -> TypeExample:
    """Return the example of a type."""
    return _run_examples().get(name) or least(name, declared)


def least(name: str, declared: type[ResourceType]) -> TypeExample:
    """Return the definition with what a type requires, and with samples of what its own checks want."""
    own_name = _BETWEEN_WORDS.sub("_", name.rpartition("::")[2]).lower()
    properties = {**_members(declared.properties_schema), **BY_TYPE.get(name, {})}
    definition = {"type": name, **({"properties": properties} if properties else {})}
    return TypeExample({own_name: definition})


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


def names_run() -> frozenset[str]:
    """Return the types of which there is an example that tests run."""
    return frozenset(_run_examples())


@functools.cache
def _run_examples() -> Mapping[str, TypeExample]:
    """Return an example of each type that tests run: with properties, of the first folder, the shortest."""
    best: dict[str, TypeExample] = {}
    ranks: dict[str, tuple[bool, int, int]] = {}
    for path, place in _templates():
        template = yaml.safe_load(path.read_text())
        if "heat_template_version" not in template:
            continue
        resources = template.get("resources") or {}
        for name, definition in _definitions(resources):
            properties = definition.get("properties")
            others = {other: resources[other] for other in _references(properties) if other in resources}
            example = TypeExample({**others, name: definition}, str(path.relative_to(ROOT)))
            rank = ("properties" not in definition, place, len("\n".join(example.lines())))
            if rank < ranks.setdefault(definition["type"], LAST):
                best[definition["type"]] = example
                ranks[definition["type"]] = rank
    return best


def _templates() -> Iterator[tuple[pathlib.Path, int]]:
    """Yield the files, with the number of each one's folder."""
    for place, folder in enumerate(FOLDERS):
        yield from ((path, place) for path in sorted((ROOT / folder).rglob("*.yaml")))


def _references(value: Json) -> Iterator[str]:
    """Yield the resources to which a value refers, in their order."""
    match value:
        case {"get_resource": str(name)} | {"get_attr": [str(name), *_]}:
            yield name
        case Mapping():
            yield from (name for item in value.values() for name in _references(item))
        case list():
            yield from (name for item in value for name in _references(item))


def _definitions(resources: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield all definitions by name, those of groups' members, too."""
    for name, definition in resources.items():
        yield name, definition
        properties = definition.get("properties") or {}
        for member in MEMBERS:
            if isinstance(inner := properties.get(member), Mapping) and "type" in inner:
                yield "member", inner
