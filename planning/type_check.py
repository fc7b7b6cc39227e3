"""Checks of a compiled template against the resource types, and against what a database can hold; pure."""

from collections.abc import Iterable, Mapping

from ..resources.errors import PropertyError, UnknownType
from ..resources.properties import validate_properties
from ..resources.registry import ResourceRegistry
from ..resources.schema import has_attribute
from ..template.errors import InvalidReference, TemplateError
from ..template.language import CompiledTemplate, Reference, ResourceDefinition
from ..template.suggestions import closest
from .goal_environment import SECRET_TEMPLATE, template_is_secret
from .requests import MayUse, TypeForbidden


def check_allowed(plan: CompiledTemplate, may_use: MayUse) -> None:
    """Check that the request may use every resource type of the template.

    :raises TypeForbidden: it may not use one of them.
    """
    for type_name in sorted({definition.type for definition in plan.resources.values()}):
        if not may_use(type_name):
            raise TypeForbidden(type_name)


def check_types(plan: CompiledTemplate, registry: ResourceRegistry) -> None:
    """Check every resource against its type, and every reference against the other's attributes.

    :raises TemplateError: with the path in the template.
    """
    for definition in plan.resources.values():
        path = ("resources", definition.name)
        try:
            plugin = registry.get(definition.type)
        except UnknownType as error:
            raise TemplateError(str(error), (*path, "type")) from error
        try:
            known = validate_properties(plugin.properties_schema, definition.properties)
            plugin.validate(known)
        except PropertyError as error:
            where = (*path, "properties", *error.path)
            raise TemplateError(f"Property error: {error.message}", where) from error
        if registry.is_nested(definition.type) and template_is_secret(definition.type, definition.properties):
            raise TemplateError(SECRET_TEMPLATE, (*path, "properties", "template"))
        try:
            validate_properties(plugin.update_policy_schema, definition.update_policy)
        except PropertyError as error:
            message = error.message.replace("Unknown Property", "Unknown key")
            raise TemplateError(message, (*path, "update_policy", *error.path)) from error
        _check_references(definition.references, path, plan.resources, registry)
    for name, output in plan.outputs.items():
        _check_references(output.references, ("outputs", name), plan.resources, registry)


def _check_references(
    references: Iterable[Reference],
    path: tuple[str, ...],
    resources: Mapping[str, ResourceDefinition],
    registry: ResourceRegistry,
) -> None:
    for reference in references:
        if not reference.attribute:
            continue
        plugin_type = resources[reference.resource].type
        try:
            schema = registry.get(plugin_type).attributes_schema
        except UnknownType:
            continue  # said at the resource itself
        if not has_attribute(schema, reference.attribute):
            hint = closest(reference.attribute, schema)
            raise InvalidReference(
                f"The Referenced Attribute ({reference.resource} {reference.attribute}) is incorrect{hint}",
                path,
            )


def check_storable(plan: CompiledTemplate) -> None:
    """Refuse texts that some databases cannot hold in a column.

    :raises TemplateError: a text holds what is not Unicode, or NUL.
    """
    texts: list[tuple[str, tuple[str, ...]]] = [(plan.description, ("description",))]
    for name, definition in plan.resources.items():
        texts += [(name, ("resources",)), (definition.declared_type, ("resources", name, "type"))]
    for text, path in texts:
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise TemplateError("a text must be Unicode without NUL characters", path)
