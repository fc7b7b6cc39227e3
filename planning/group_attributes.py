"""What others ask of the members of groups: known when a template is compiled, and told to the groups."""

import typing
from collections.abc import Mapping
from dataclasses import replace

from ..resources.errors import UnknownType
from ..resources.nested.base import NestedType
from ..resources.nested.members import output_name
from ..resources.registry import ResourceRegistry
from ..template.errors import InvalidReference, TemplateError
from ..template.model import CompiledTemplate, ResourceDefinition
from ..template.residual import ARGS, FN, is_node, node, references

Json = typing.Any
PATHS_SINCE = "2014-10-16"
"""Version from which the path of get_attr is handed to the resource; before, it led into the value."""
_PARTS = ("properties", "metadata", "update_policy", "external_id")


def with_requested_attributes(plan: CompiledTemplate, registry: ResourceRegistry) -> CompiledTemplate:
    """The template with `wanted` set on each group, and with references that name what was wanted.

    ``[group, address, 0]`` asks each member for ``[address, 0]``, not the list of addresses for its first
    one; so it becomes a reference to the group's attribute "address, 0".

    :raises TemplateError: what is asked for cannot be told; with the path in the template.
    """
    groups = {
        name: plugin
        for name, definition in plan.resources.items()
        if (plugin := _group(definition, registry)) is not None
    }
    if not groups:
        return plan
    rewriter = _Rewriter(groups, takes_paths=plan.version >= PATHS_SINCE)
    found = {name: rewriter.resource(definition) for name, definition in plan.resources.items()}
    outputs = {}
    for name, output in plan.outputs.items():
        value = rewriter.value(output.value, ("outputs", name, "value"))
        outputs[name] = replace(output, value=value, references=references(value))
    for name, wanted in rewriter.wanted.items():
        parts = tuple(wanted[key] for key in sorted(wanted))
        found[name] = replace(found[name], requested_attributes=parts)
    return replace(plan, resources=found, outputs=outputs)


def _group(definition: ResourceDefinition, registry: ResourceRegistry) -> NestedType | None:
    try:
        plugin = registry.get(definition.type)
    except UnknownType:
        return None
    return plugin if isinstance(plugin, NestedType) and plugin.has_member_attributes else None


class _Rewriter:
    """For one template."""

    def __init__(self, groups: Mapping[str, NestedType], *, takes_paths: bool) -> None:
        self._groups = groups
        self._takes_paths = takes_paths
        self.wanted: dict[str, dict[str, tuple[str | int, ...]]] = {name: {} for name in groups}

    def resource(self, definition: ResourceDefinition) -> ResourceDefinition:
        parts = {
            key: self.value(getattr(definition, key), ("resources", definition.name, key)) for key in _PARTS
        }
        return replace(definition, references=references(list(parts.values())), **parts)

    def value(self, tree: Json, path: tuple[str | int, ...]) -> Json:
        if is_node(tree):
            if tree[FN] == "literal":
                return {**tree, ARGS: [self._members(tree[ARGS][0], path)]}
            args = [self.value(arg, path) for arg in tree[ARGS]]
            if tree[FN] == "get_attr" and args[0] in self._groups and args[1]:
                return self._asked(args, path)
            return {**tree, ARGS: args}
        if isinstance(tree, dict):
            return self._members(tree, path)
        if isinstance(tree, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(tree)]
        return tree

    def _members(self, tree: Mapping[str, Json], path: tuple[str | int, ...]) -> dict[str, Json]:
        return {key: self.value(item, (*path, key)) for key, item in tree.items()}

    def _asked(self, args: list[Json], path: tuple[str | int, ...]) -> Json:
        name, attribute, *steps = args
        inside = steps if self._takes_paths else []
        try:
            wanted = self._groups[name].member_attribute(attribute, inside)
        except LookupError as error:
            text = f"The Referenced Attribute ({name} {attribute}) is incorrect: {error}"
            raise InvalidReference(text, path) from error
        if wanted is None:
            return node("get_attr", *args)
        if not all(isinstance(part, str | int) for part in inside):
            raise TemplateError(
                f"what is asked of the members of {name} must be known before any resource exists", path
            )
        key = output_name(wanted)
        self.wanted[name][key] = tuple(wanted)
        return node("get_attr", name, key, *([] if self._takes_paths else steps))
