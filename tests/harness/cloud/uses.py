"""Uses of the parameters of somebody's template, found by the schemas of the properties that get them."""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping

import yaml

Json = typing.Any
Schemas = Callable[[str], Mapping[str, Json]]
"""Type -> its properties, as ``GET /resource_types/TYPE`` shows them; empty for one that is not known."""
NUMBER: Mapping[str, Json] = {"type": "number"}
DEEPEST = 5
"""Levels of nested templates that are followed."""


@dataclasses.dataclass(frozen=True)
class Use:
    """A place in a template that gets a value.

    :ivar parameter: the name of the parameter whose value it gets; None: a literal one.
    :ivar value: the literal one.
    :ivar place: type of the resource, and the way to the property in it.
    :ivar schema: the property's, as far as it is known.
    :ivar indexed: the property gets an item of the parameter's list.
    """

    parameter: str | None
    value: Json
    place: str
    schema: Mapping[str, Json]
    indexed: bool = False

    @property
    def constraints(self) -> list[Json]:
        """The constraints of the property."""
        return list(self.schema.get("constraints") or ())


class Reader(yaml.SafeLoader):
    """Reads any template; dates stay text."""


Reader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


@dataclasses.dataclass(frozen=True)
class Uses:
    """Finds the uses in templates.

    :ivar files: files of a request by address.
    :ivar aliases: type -> address of a template, as an environment maps it.
    """

    schemas: Schemas
    files: Mapping[str, str]
    aliases: Mapping[str, Json]

    def of(self, template: Json, depth: int = 0) -> Iterator[Use]:
        """Yield the uses in a template, and those that its parameters have in the nested ones."""
        resources = template.get("resources") if isinstance(template, Mapping) else None
        for body in resources.values() if isinstance(resources, Mapping) else ():
            if isinstance(body, Mapping) and isinstance(body.get("type"), str):
                yield from self._of_resource(body, depth)

    def _of_resource(self, body: Json, depth: int) -> Iterator[Use]:
        kind = body["type"]
        properties = body.get("properties")
        yield from self._walk(body.get("external_id"), {}, f"{kind} external_id", depth)
        address = self.aliases.get(kind, kind)
        if isinstance(address, str) and address in self.files:
            yield from self._of_nested(properties, address, depth)
        elif (address := _template_of(properties)) in self.files:
            yield from self._of_nested(properties.get("parameters"), address, depth)
        elif isinstance(properties, Mapping):
            schema = self.schemas(kind)
            for name, value in properties.items():
                yield from self._walk(value, schema.get(name) or {}, f"{kind} {name}", depth)

    def _of_nested(self, values: Json, address: str, depth: int) -> Iterator[Use]:
        """Yield what the properties of a nested template are used for in it, and its literal ones."""
        if depth >= DEEPEST or not isinstance(values, Mapping):
            return
        template = yaml.load(self.files[address], Reader)  # noqa: S506
        for use in self.of(template, depth + 1):
            if use.parameter is None:
                yield use
            elif (value := values.get(use.parameter)) is not None:
                yield from self._walk(value, use.schema, use.place, depth)
        for name, definition in (template.get("parameters") or {}).items():
            if name in values:
                yield from self._walk(values[name], definition, f"{address} {name}", depth)

    def _walk(self, value: Json, schema: Mapping[str, Json], place: str, depth: int) -> Iterator[Use]:
        inner = schema.get("schema") or {}
        if isinstance(value, Mapping):
            yield from self._walk_map(value, schema, place, depth)
        elif isinstance(value, list):
            for item in value:
                yield from self._walk(item, inner.get("*") or {}, place, depth)
        elif value is not None:
            yield Use(None, value, place, schema)

    def _walk_map(self, value: Json, schema: Mapping[str, Json], place: str, depth: int) -> Iterator[Use]:
        if isinstance(value.get("type"), str) and isinstance(value.get("properties"), Mapping):
            yield from self._of_resource(value, depth)
            return
        match value:
            case {"get_param": str(name)}:
                yield Use(name, None, place, schema)
            case {"get_param": [str(name), *indexes]}:
                yield Use(name, None, place, schema, indexed=True)
                for index in indexes:
                    yield from self._walk(index, NUMBER, "index", depth)
            case {"list_concat": [*lists]} | {"list_concat_unique": [*lists]}:
                for part in lists:
                    yield from self._walk(part, schema, place, depth)
            case {"if": [_, *branches]}:
                for branch in branches:
                    yield from self._walk(branch, schema, place, depth)
            case _:
                inner = schema.get("schema") or {}
                for name, item in value.items():
                    yield from self._walk(item, inner.get(name) or {}, f"{place}.{name}", depth)


def _template_of(properties: Json) -> str:
    """Return the address of the template that a resource gets as a property; empty: it gets none."""
    match properties:
        case {"template": {"get_file": str(address)}}:
            return address
    return ""
