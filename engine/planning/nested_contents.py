"""Types of the resources inside of nested stacks, and the values that such resources may name; pure.

Templates are read as they are, without values: a nested stack is compiled where it is made, and its parent
has to know before what others will find in it.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...resources.contract.errors import PropertyError, StepError
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import validate_properties
from ...resources.nested.base import NestedType
from ...resources.registry import ResourceRegistry
from ...shapes import Json, JsonMap
from ...template.budget import Budget, charged_at
from ...template.environment import Environment, map_type, nested_environment
from ...template.errors import LimitExceeded, TemplateError
from ...template.formats import section_of
from ...template.language import CompiledTemplate, ResourceDefinition, is_template_name
from ...template.load import LoadedTemplates
from .implied import with_implied_dependencies
from .nested_check import static_goal

_DEEPEST = 20
"""Levels of nested stacks that are read; the limit of levels refuses deeper ones anyway."""
_READ = 500
"""Characters of a template, or of a registry, that one step of work reads."""
_TYPE = ("type", "Type")
_PROPERTIES = ("properties", "Properties")
_READS = ("get_param", "Ref")
_REFERS = ("get_resource", "get_attr", "Ref", "Fn::GetAtt")

Parameters = Mapping[str, frozenset[str]]
"""Types inside -> the names of the nested stack's parameters that resources of the type may read."""


@dataclass
class NestedContents:
    """The contents of the nested stacks of a request.

    :ivar files: the files of the stack, by name.
    :ivar templates: the templates of the request; those above their limit are not read.
    :ivar targets: names of types, in templates or after the mapping; others are not read.
    """

    registry: ResourceRegistry
    files: Mapping[str, str]
    templates: LoadedTemplates
    budget: Budget
    targets: Collection[str]
    _read: dict[tuple[str, str], Parameters] = field(default_factory=dict)

    def ordered(
        self, plan: CompiledTemplate, types: Mapping[str, ResourceType], environment: Environment
    ) -> CompiledTemplate:
        """Return the template of a stack with the dependencies that its types imply, in the order they need.

        :param types: the type of each resource, by the resource's name.
        :raises CircularDependency: resources would wait for each other in a circle.
        :raises LimitExceeded: that takes too much work.
        """
        implied = {name: plugin.implied_dependencies for name, plugin in types.items()}
        nested = [name for name, plugin in types.items() if isinstance(plugin, NestedType)]
        if not nested and not any(implied.values()):
            return plan
        inside = self.registry.implied_dependencies if nested else ()
        contents = {}
        for name in nested:
            with charged_at("resources", name):
                contents[name] = self.values(plan.resources[name], environment)
        return with_implied_dependencies(plan, implied, self.budget, contents, inside)

    def values(
        self, definition: ResourceDefinition, environment: Environment
    ) -> Mapping[str, Sequence[Json]]:
        """Return, by type, the values in a resource's properties that resources inside of it may name.

        :param environment: the environment of the stack around the resource.
        :returns: nothing of what is not known yet, or wrong: the check of the nested stacks says so.
        :raises LimitExceeded: the templates take too much work.
        """
        plugin = self.registry.get(definition.type)
        assert isinstance(plugin, NestedType)
        try:
            below = nested_environment(environment, definition.name, definition.declared_type, self.budget)
            if is_template_name(definition.type):
                values = definition.properties
            else:
                values = validate_properties(plugin.properties_schema, definition.properties)
            goal = static_goal(definition, plugin, values, self.files)
            if goal is None:
                return {}
            if not goal.generated:
                document = goal.template if isinstance(goal.template, str) else json.dumps(goal.template)
                return _chosen(self._parameters(document, below, 1), goal.parameters)
            assert isinstance(goal.template, Mapping), "a generated template is a map"
            return self._of_members(goal.template["resources"], below)
        except LimitExceeded:
            raise
        except (TemplateError, PropertyError, StepError):
            return {}

    def _of_members(self, members: Mapping[str, JsonMap], environment: Environment) -> dict[str, list[Json]]:
        """Return the values by type of a group's members, whose properties have values and no functions."""
        values: dict[str, list[Json]] = {}
        for name, body in members.items():
            for type_name, inside in self._types(name, body["type"], environment, 1):
                properties = body.get("properties") or {}
                of_type = properties if inside is None else {key: properties.get(key) for key in inside}
                values.setdefault(type_name, []).extend(of_type.values())
        return values

    def _types(
        self, name: str, declared: str, environment: Environment, depth: int
    ) -> Iterator[tuple[str, frozenset[str] | None]]:
        """Yield the types that a resource is or contains.

        :returns: with each type the properties of the resource that are read inside; None: all of them.
        """
        mapped = map_type(environment, [name], declared, self.budget).name
        if is_template_name(mapped):
            if mapped in self.files:
                below = nested_environment(environment, name, declared, self.budget)
                yield from self._parameters(self.files[mapped], below, depth + 1).items()
        else:
            yield from ((type_name, None) for type_name in {declared, mapped} if type_name in self.targets)

    def _parameters(self, document: str, environment: Environment, depth: int) -> Parameters:
        """Return the types in a template, with those below, and the parameters that they read."""
        if depth > _DEEPEST:
            return {}
        key = (document, str(environment.registry))
        self.budget.step(1 + len(key[1]) // _READ)
        if key not in self._read:
            self.budget.step(len(key[0]) // _READ)
            self._read[key] = {}  # One that contains itself is refused elsewhere.
            if self._may_contain(document, environment):
                resources = section_of(self.templates.load(document), "resources")
                self._read[key] = self._types_in(
                    resources if isinstance(resources, Mapping) else {}, environment, depth
                )
        return self._read[key]

    def _may_contain(self, document: str, environment: Environment) -> bool:
        """Return whether it is worth to load a document: it names a type, or other templates may."""
        if len(document) > self.templates.max_bytes > 0:
            return False  # It is refused elsewhere, with its own path.
        if environment.registry or environment.operator is not None:
            return True
        return any(name in document for name in (*self.targets, ".yaml", ".template"))

    def _types_in(
        self, resources: JsonMap, environment: Environment, depth: int
    ) -> dict[str, frozenset[str]]:
        types: dict[str, frozenset[str]] = {}
        for name, body in resources.items():
            for declared, properties in _bodies(body):
                for type_name, inside in self._types(str(name), declared, environment, depth):
                    read = properties
                    if inside is not None and isinstance(properties, Mapping):
                        read = [properties.get(key) for key in inside]
                    names = _names_read(read, resources, self.budget)
                    types[type_name] = types.get(type_name, frozenset()) | names
        return types


def _chosen(inside: Parameters, parameters: JsonMap) -> dict[str, list[Json]]:
    return {
        type_name: [parameters[name] for name in sorted(names) if name in parameters]
        for type_name, names in inside.items()
    }


def _bodies(body: Json) -> Iterator[tuple[str, Json]]:
    """Yield the type and the properties of a resource, and of the members that its properties define."""
    stack = [body]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            declared = _first(item, _TYPE)
            properties = _first(item, _PROPERTIES)
            if isinstance(declared, str):
                yield declared, properties
            stack += properties.values() if isinstance(properties, Mapping) else ()


def _first(body: Mapping[str, Json], keys: Sequence[str]) -> Json:
    return next((body[key] for key in keys if key in body), None)


def _names_read(tree: Json, resources: JsonMap, budget: Budget) -> frozenset[str]:
    """Return the names of parameters in a part of a raw template, and in the resources that it refers to."""
    names: set[str] = set()
    followed: set[str] = set()
    stack = [tree]
    while stack:
        item = stack.pop()
        budget.step()
        if isinstance(item, list):
            stack += item
        if not isinstance(item, Mapping):
            continue
        for key, value in item.items():
            subject = value[0] if isinstance(value, list) and value else value
            if key in _REFERS and isinstance(subject, str) and subject.partition(".")[0] in resources:
                other = subject.partition(".")[0]
                if other not in followed:
                    followed.add(other)
                    body = resources[other]
                    stack.append(_first(body, _PROPERTIES) if isinstance(body, Mapping) else None)
            elif key in _READS and isinstance(subject, str):
                names.add(subject)
            stack.append(value)
    return frozenset(names)
