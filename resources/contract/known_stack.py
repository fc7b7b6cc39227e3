"""The resources of a template as far as they are known when it is compiled, for the rules of their types.

A rule (`ResourceType.stack_rules`) finds what the services would refuse in any case, before anything is made.
It may refuse no value that a service takes.  So it says nothing of what it cannot know: values of hidden
parameters, and values that come from attributes or from resources outside of the template.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...shapes import Json, JsonMap
from ...template.language import Reference, ResourceDefinition
from ...template.residual import ARGS, FN, is_deferred, is_node, members, plain
from .errors import PropertyError
from .properties import meant, property_of, renamed, resolve_properties
from .schema import Property

PropertyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Made:
    """The thing that a resource of the template makes: the value of ``get_resource``."""

    resource: str


Thing = Made | str
"""A thing that a property names: one that the template makes, or one that exists, by its name or id."""


@dataclass(frozen=True)
class BrokenRule:
    """A value that a service would refuse.

    :ivar resource: the name of the resource.
    :ivar path: the path of the value in its properties.
    """

    resource: str
    message: str
    path: PropertyPath = ()


@dataclass(frozen=True)
class KnownResource:
    """A resource as far as it is known.

    :ivar type: the name of its type, after the environment's mapping.
    :ivar schema: the schema of its properties.
    :ivar service: type of the service that makes it; None: it may be anything, also a nested stack.
    """

    name: str
    type: str
    schema: Mapping[str, Property]
    properties: Mapping[str, Json]
    references: tuple[Reference, ...] = ()
    service: str | None = None

    @classmethod
    def of(
        cls, definition: ResourceDefinition, schema: Mapping[str, Property], service: str | None
    ) -> "KnownResource":
        """Return the resource of a definition whose properties have no errors."""
        properties = definition.properties
        return cls(definition.name, definition.type, schema, properties, definition.references, service)

    @property
    def values(self) -> JsonMap:
        """The known properties, as `ResourceType.validate` gets them: one that is unknown is absent.

        The same holds inside of lists and maps.  An unknown item of a list is an empty map if its items are
        maps, and otherwise None.
        """
        return self._known

    def thing(self, *path: str | int) -> Thing | None:
        """Return what the property at a path names; None: nothing, or that is not known."""
        value: Json = self._known
        try:
            for part in path:
                value = value[part]
        except (KeyError, IndexError, TypeError):
            value = None
        # Looked up only now: reading the value is what fills it.
        if (name := self._known.references.get(path)) is not None:
            return Made(name)
        return value if isinstance(value, str) and value else None

    @functools.cached_property
    def _known(self) -> "_KnownValues":
        if is_node(self.properties) and self.properties[FN] != "literal":
            return _KnownValues({}, {})
        return _KnownValues(self.schema, members(self.properties))


class _KnownValues(Mapping[str, Json]):
    """The known properties of a resource.

    Each is read when a rule first asks for it: rules ask for few, and a template may have many resources.

    :ivar references: the resources that the properties which were read refer to, by their paths.
    """

    def __init__(self, schema: Mapping[str, Property], trees: JsonMap) -> None:
        self.references: dict[PropertyPath, str] = {}
        self._schema = schema
        self._trees = renamed(schema, trees)
        self._values: dict[str, Json] = {}

    def __getitem__(self, name: str) -> Json:
        """Return a value; KeyError: it is not known, or there is no such property."""
        if name not in self._values:
            self._values[name] = self._read(name)
        value = self._values[name]
        if value is _ABSENT:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        """Return the names of the known properties."""
        return (name for name in {**self._schema, **self._trees} if name in self)

    def __len__(self) -> int:
        """Return the number of known properties."""
        return sum(1 for _ in self)

    def _read(self, name: str) -> Json:
        if name not in self._schema and name not in self._trees:
            return _ABSENT
        return _known_member(self._schema, self._trees, name, (), self.references)


@dataclass(frozen=True)
class KnownStack:
    """The resources of one template that are certain to be there, by name.

    Those with an ``external_id``, of which the template makes nothing, are not among them.

    :ivar is_new: nothing of the stack exists yet, and the template shows all of its resources.
    """

    resources: Mapping[str, KnownResource]
    is_new: bool = False

    def of_type(self, *types: str) -> Iterator[KnownResource]:
        """Yield the resources of some types."""
        for name in types:
            yield from self._by_type.get(name, ())

    def made(self, thing: Thing | None) -> KnownResource | None:
        """Return the resource that makes a thing; None: none does, or it is not known."""
        return self.resources.get(thing.resource) if isinstance(thing, Made) else None

    @functools.cached_property
    def _by_type(self) -> Mapping[str, list[KnownResource]]:
        by_type: dict[str, list[KnownResource]] = {}
        for resource in self.resources.values():
            by_type.setdefault(resource.type, []).append(resource)
        return by_type


StackRule = Callable[[KnownStack], Iterable[BrokenRule]]
"""A rule over the resources of one template.

It is called once for each template that has a resource of a type that declares it, and takes time that grows
with the number of resources only.
"""


def rule_of_each(type_name: str, errors_of: Callable[[JsonMap], Iterable[PropertyError]]) -> StackRule:
    """Return the rule that judges each resource of a type by its own known values.

    :param errors_of: returns the errors of `KnownResource.values`.
    """

    def rule(stack: KnownStack) -> Iterator[BrokenRule]:
        for resource in stack.of_type(type_name):
            for error in errors_of(resource.values):
                yield BrokenRule(resource.name, error.message, error.path)

    return rule


_ABSENT = object()


def _known_members(
    schema: Mapping[str, Property], trees: JsonMap, path: PropertyPath, made: dict[PropertyPath, str]
) -> dict[str, Json]:
    trees = renamed(schema, trees)
    values = {name: _known_member(schema, trees, name, path, made) for name in {**schema, **trees}}
    return {name: value for name, value in values.items() if value is not _ABSENT}


def _known_member(
    schema: Mapping[str, Property],
    trees: JsonMap,
    name: str,
    path: PropertyPath,
    made: dict[PropertyPath, str],
) -> Json:
    prop = property_of(schema, name)
    if name in trees:
        return _known(prop, trees[name], (*path, name), made)
    return None if prop.default is None else _resolved(prop, None)


def _known(prop: Property, tree: Json, path: PropertyPath, made: dict[PropertyPath, str]) -> Json:
    """Return the known value of a property; `_ABSENT`: it is not known.

    :param made: gets the resources that the property, and those in it, refer to, by their paths.
    """
    if not is_deferred(tree):
        return _resolved(prop, plain(tree))
    if is_node(tree) and tree[FN] != "literal":
        if tree[FN] == "get_resource":
            made[path] = tree[ARGS][0]
        return _ABSENT
    if isinstance(prop.schema, Mapping) and isinstance(tree, dict):
        return _known_members(prop.schema, members(tree), path, made)
    if isinstance(prop.schema, Property) and isinstance(tree, list):
        unknown: Json = {} if prop.schema.type == "map" else None
        items = (_known(prop.schema, item, (*path, index), made) for index, item in enumerate(tree))
        return [unknown if item is _ABSENT else item for item in items]
    if prop.type == "map" and prop.schema is None:
        # Nobody may take a part of it for the whole: only what it refers to is known.
        for name, value in members(tree).items():
            if is_node(value) and value[FN] == "get_resource":
                made[(*path, name)] = value[ARGS][0]
    return _ABSENT


def _resolved(prop: Property, value: Json) -> Json:
    try:
        return meant(prop, resolve_properties({"value": prop}, {"value": value})["value"])
    except PropertyError:
        return _ABSENT
