"""Attributes of resources that others show: those of members of groups, and those that change; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...resources.contract.plugin import ResourceType
from ...resources.contract.schema import is_volatile
from ...resources.nested.base import NestedType
from ...resources.nested.members import output_name
from ...shapes import Json, JsonMap
from ...template.errors import TemplateError, UnknownAttribute
from ...template.language import CompiledTemplate, OutputDefinition, ResourceDefinition
from ...template.residual import ARGS, FN, failing, is_node, node, references

PATHS_SINCE = "2014-10-16"
"""Version from which get_attr passes its path to the resource; before, the path led into the value."""
_PARTS = ("properties", "metadata", "update_policy", "external_id")


def with_requested_attributes(plan: CompiledTemplate, types: Mapping[str, ResourceType]) -> CompiledTemplate:
    """Return the template with the requested attributes of each group, and with references that name them.

    ``[group, address, 0]`` requests ``[address, 0]`` of each member, not the first item of the list of
    addresses.  So it becomes a reference to the group's attribute "address, 0".

    :param types: the types of the resources, by the resources' names.
    :raises TemplateError: a requested attribute is not known before a step; with the path in the template.
    """
    groups = {
        name: plugin
        for name, plugin in types.items()
        if isinstance(plugin, NestedType) and plugin.has_member_attributes
    }
    if not groups:
        return plan
    rewriter = _Rewriter(groups, takes_paths=plan.version >= PATHS_SINCE)
    rewritten = {name: rewriter.resource(definition) for name, definition in plan.resources.items()}
    outputs = {}
    for name, output in plan.outputs.items():
        value = rewriter.value(output.value, ("outputs", name, "value"))
        outputs[name] = replace(output, value=value, references=references(value))
    for name, requested in rewriter.requested.items():
        parts = tuple(requested[key] for key in sorted(requested))
        rewritten[name] = replace(rewritten[name], requested_attributes=parts)
    return replace(plan, resources=rewritten, outputs=outputs)


class _Rewriter:
    """Collects the requested attributes of one template, and rewrites the references to them."""

    def __init__(self, groups: Mapping[str, NestedType], *, takes_paths: bool) -> None:
        self._groups = groups
        self._takes_paths = takes_paths
        self.requested: dict[str, dict[str, tuple[str | int, ...]]] = {name: {} for name in groups}

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
                return self._requested(args, path)
            return {**tree, ARGS: args}
        if isinstance(tree, dict):
            return self._members(tree, path)
        if isinstance(tree, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(tree)]
        return tree

    def _members(self, tree: JsonMap, path: tuple[str | int, ...]) -> dict[str, Json]:
        return {key: self.value(item, (*path, key)) for key, item in tree.items()}

    def _requested(self, args: list[Json], path: tuple[str | int, ...]) -> Json:
        name, attribute, *steps = args
        inside = steps if self._takes_paths else []
        try:
            requested = self._groups[name].member_attribute(attribute, inside)
        except LookupError as error:
            text = f"The Referenced Attribute ({name} {attribute}) is incorrect. {error}"
            if path[0] == "outputs":
                return failing(text)  # Heat makes the stack; only who reads the output gets the error.
            raise UnknownAttribute(text, path) from error
        if requested is None:
            return node("get_attr", *args)
        if not all(isinstance(part, str | int) for part in inside):
            raise TemplateError(
                f"the attribute read from the members of {name} must be known before any resource exists",
                path,
            )
        key = output_name(requested)
        self.requested[name][key] = tuple(requested)
        return node("get_attr", name, key, *([] if self._takes_paths else steps))


def refreshed_for(outputs: Iterable[OutputDefinition], types: Mapping[str, ResourceType]) -> tuple[str, ...]:
    """Return the names of resources of which outputs show attributes that others change, sorted.

    :param types: the types of the resources, by the resources' names.
    """
    schemas = {
        name: plugin.attributes_schema
        for name, plugin in types.items()
        if type(plugin).refresh is not ResourceType.refresh
    }
    read = (reference for output in outputs for reference in output.references)
    return tuple(
        sorted(
            {
                reference.resource
                for reference in read
                if reference.attribute is not None
                and reference.resource in schemas
                and is_volatile(schemas[reference.resource], reference.attribute)
            }
        )
    )
