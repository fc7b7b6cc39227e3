"""The preview of a creation: the resources of a stack, and in their places those of nested stacks; pure."""

from collections.abc import Mapping

from ...engine.planning.requests import NestedChild, PreviewedResource, PreviewedResources
from ...resources.contract.schema import ANY_NAME, BASE_ATTRIBUTES
from ...resources.registry import ResourceRegistry
from ...template.language import CompiledTemplate, Residual, ResourceDefinition
from ...template.residual import members


def previewed_resources(
    plan: CompiledTemplate,
    children: Mapping[str, NestedChild],
    registry: ResourceRegistry,
    stack_name: str,
    parent: str | None = None,
) -> PreviewedResources:
    """Return the resources of a stack as they are before anything exists.

    As in Heat, the list of its resources is in the place of one that is a nested stack.

    :param children: the nested stacks, by the names of their resources; of others nothing is known yet.
    :param parent: name of the resource that the stack is.
    """
    required_by: dict[str, list[str]] = {name: [] for name in plan.resources}
    for name, definition in plan.resources.items():
        for required in definition.requires:
            required_by.setdefault(required, []).append(name)
    previewed: list[PreviewedResource | PreviewedResources] = []
    for name, definition in plan.resources.items():
        child = children.get(name)
        if child is not None and child.stack.plan is not None:
            below = f"{stack_name}-{name}"
            stack = child.stack
            previewed.append(previewed_resources(child.stack.plan, stack.children, registry, below, name))
            continue
        previewed.append(
            PreviewedResource(
                name=name,
                type=definition.declared_type,
                properties=_with_defaults(definition, registry),
                metadata=definition.metadata,
                description=definition.description,
                required_by=sorted(required_by[name]),
                attributes=_attributes(definition, registry),
                stack_name=stack_name,
                parent=parent,
            )
        )
    return previewed


def _with_defaults(definition: ResourceDefinition, registry: ResourceRegistry) -> Residual:
    schema = registry.get(definition.type).properties_schema
    properties = definition.properties
    if properties and not members(properties):
        return properties  # A function makes them.
    names = [name for name, prop in schema.items() if name != ANY_NAME and not prop.support_status.hidden]
    return {**{name: schema[name].default for name in names}, **members(properties)}


def _attributes(definition: ResourceDefinition, registry: ResourceRegistry) -> list[str]:
    schema = registry.get(definition.type).attributes_schema
    return sorted({*schema, *BASE_ATTRIBUTES} - {ANY_NAME})
