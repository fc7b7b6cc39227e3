"""Checks of a compiled template: its types are available and allowed, and its resources fit them; pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...resources.contract.errors import AbsentType, PropertyError, UnknownProperty, UnknownType
from ...resources.contract.known_stack import KnownResource, KnownStack
from ...resources.contract.plugin import ResourceType
from ...resources.contract.properties import known_properties, meanings
from ...resources.contract.schema import has_attribute
from ...resources.heat.software_configs import ConfigType
from ...resources.heat_types import HEAT_TYPES
from ...resources.nested.base import NestedType
from ...resources.registry import ResourceRegistry
from ...template.budget import Budget, json_size
from ...template.errors import (
    ErrorList,
    InvalidProperty,
    LimitExceeded,
    TemplateError,
    UnavailableType,
    UnknownAttribute,
    WordedByHeat,
    named_at_once,
)
from ...template.language import CompiledTemplate, Reference, ResourceDefinition
from ...template.residual import Lookup, is_deferred, members, plain
from ...template.suggestions import closest
from .goal import SECRET_TEMPLATE, template_is_secret
from .requests import MayUse, TypeForbidden, TypeUnavailable

NO_CLOUD = (
    "this Stoker has no access to a cloud. With Keystone it has one: [api] auth_strategy = keystone; "
    "see doc/operation.md#trusts, or try `make demo-cloud`."
)
_MOST_TYPES = 2
"""Other types with a property that an error names at the most."""


def check_allowed(plan: CompiledTemplate, may_use: MayUse) -> None:
    """Check that the request may use every resource type of the template.

    :raises TypeForbidden: the request may not use one of the types.
    """
    certain = {item.type for name, item in plan.resources.items() if name not in plan.uncertain}
    for type_name in sorted(certain):
        if not may_use(type_name):
            raise TypeForbidden(type_name)


def check_available(
    plan: CompiledTemplate, registry: ResourceRegistry, has_service: Callable[[str], bool]
) -> None:
    """Check that the caller's cloud has the services that the resource types need.

    :raises TypeUnavailable: the cloud lacks a service.
    """
    for name, definition in plan.resources.items():
        service = registry.service_of(definition.type)
        if service is not None and not has_service(service) and name not in plan.uncertain:
            raise TypeUnavailable(definition.type, service)


def without_unavailable(
    plan: CompiledTemplate, registry: ResourceRegistry, has_service: Callable[[str], bool]
) -> CompiledTemplate:
    """Return the plan in which resources of unavailable types need not exist, so that nobody judges them."""
    unavailable = {
        name
        for name, definition in plan.resources.items()
        if definition.type in HEAT_TYPES
        and definition.type not in registry
        or (service := registry.service_of(definition.type)) is not None
        and not has_service(service)
    }
    return replace(plan, uncertain=plan.uncertain | unavailable)


def check_needs_no_cloud(plan: CompiledTemplate, registry: ResourceRegistry) -> None:
    """Check that no resource calls a service of a cloud.

    :raises TypeUnavailable: a resource calls a service of a cloud.
    """
    for definition in plan.resources.values():
        plugin = registry.get(definition.type)
        if plugin.service is not None and plugin.uses_credentials and not plugin.works_without_cloud:
            raise TypeUnavailable(definition.type, plugin.service, NO_CLOUD)


def check_types(
    plan: CompiledTemplate,
    registry: ResourceRegistry,
    secrets: Lookup,
    budget: Budget,
    errors: ErrorList | None = None,
) -> CompiledTemplate:
    """Check every resource against its type, and every reference against the other's attributes.

    :param secrets: opens the tokens of hidden parameters.
    :param errors: gets the errors, with their paths in the template; None: they are raised.
    :returns: the plan without the resources that have errors, with the variants of types.
    :raises TemplateError: there are errors.
    """
    if errors is None:
        with named_at_once() as errors:
            return check_types(plan, registry, secrets, budget, errors)
    wrong = set()
    chosen = dict[str, ResourceDefinition]()
    for definition in plan.resources.values():
        of_resource = ErrorList()
        with of_resource.collect():
            plugin = _check_resource(definition, registry, plan.resources, of_resource)
            has_variants = plugin is not None and (plugin.chosen_by or plugin.renamed_to)
            if has_variants and of_resource.is_empty:
                chosen[definition.name] = registry.with_variant(definition, secrets, budget)
        if not of_resource.is_empty:
            wrong.add(definition.name)
            if definition.name not in plan.uncertain:
                errors.add_all(of_resource)
    for name, output in plan.outputs.items():
        _check_references(output.references, ("outputs", name), plan.resources, registry, errors)
    if not wrong and not chosen:
        return plan
    definitions = {**plan.resources, **chosen}
    return replace(plan, resources={name: item for name, item in definitions.items() if name not in wrong})


def check_config_sizes(
    plan: CompiledTemplate, types: Mapping[str, ResourceType], most: int, errors: ErrorList
) -> None:
    """Check the texts of software configs, as far as they are known; a step checks the rest.

    :param types: the type of each resource.
    :param most: bytes of one config; 0: no limit.
    :param errors: gets a LimitExceeded for each config that is too large.
    """
    for name, definition in plan.resources.items() if most else ():
        if not isinstance(types[name], ConfigType):
            continue
        parts = {
            key: plain(value)
            for key, value in members(definition.properties).items()
            if not is_deferred(value)
        }
        size = sum(json_size(part) for key, part in parts.items() if key not in ("name", "group"))
        if size > most:
            message = f"the config has {size} bytes, above the limit of {most} ([stacks] max_software_config)"
            errors.add(LimitExceeded(message, ("resources", name, "properties")))


def check_stack_rules(
    plan: CompiledTemplate, types: Mapping[str, ResourceType], errors: ErrorList, *, is_new: bool = False
) -> None:
    """Check the rules that the types of a template declare over all of its resources.

    :param types: the type of each resource.
    :param errors: gets an error for each rule that is broken.
    :param is_new: nothing of the stack exists yet, and the resources of no other template belong to it.
    """
    rules = dict.fromkeys(rule for plugin in types.values() for rule in plugin.stack_rules)
    if not rules:
        return
    resources = {
        name: KnownResource.of(definition, types[name].properties_schema, types[name].service)
        for name, definition in plan.resources.items()
        if name not in plan.uncertain and definition.external_id is None
    }
    stack = KnownStack(resources, is_new=is_new and len(resources) == len(plan.resources))
    for rule in rules:
        for broken in rule(stack):
            path = ("resources", broken.resource, "properties", *broken.path)
            errors.add(InvalidProperty(broken.message, path))


def _check_resource(
    definition: ResourceDefinition,
    registry: ResourceRegistry,
    resources: Mapping[str, ResourceDefinition],
    errors: ErrorList,
) -> ResourceType | None:
    """Check a resource, and return its type; None: there is no such type."""
    path = ("resources", definition.name)
    plugin = None
    try:
        plugin = registry.get(definition.type)
        if plugin.variant_of is not None:
            raise UnknownType(f"The Resource Type ({definition.type}) could not be found.")
    except UnknownType as error:
        kind = UnavailableType if isinstance(error, AbsentType) else WordedByHeat
        errors.add(kind(str(error), (*path, "type")))
    else:
        if plugin.stored_here and definition.external_id is not None:
            text = (
                f"{definition.declared_type} belongs to the stack that makes it, as Stoker itself stores it"
            )
            errors.add(TemplateError(f"{text}: it cannot be named by external_id", (*path, "external_id")))
        elif definition.external_id is None:  # Nothing is made from the properties of an existing resource.
            wrong = _wrong_properties(definition, plugin, resources)
            for problem in wrong:
                message = problem.message
                if isinstance(problem, UnknownProperty) and not problem.path:
                    message = problem.text(_other_type_hint(problem.name, definition, registry))
                errors.add(InvalidProperty(message, (*path, "properties", *problem.path)))
            _check_policies(definition, plugin, errors)
    if isinstance(plugin, NestedType) and template_is_secret(definition.type, definition.properties):
        errors.add(TemplateError(SECRET_TEMPLATE, (*path, "properties", "template")))
    _check_references(definition.references, path, resources, registry, errors)
    return plugin


def _wrong_properties(
    definition: ResourceDefinition, plugin: ResourceType, resources: Mapping[str, ResourceDefinition]
) -> list[PropertyError]:
    """Return the errors of a resource's properties, each with its path below them."""
    wrong: list[PropertyError] = []
    values = known_properties(plugin.properties_schema, definition.properties, wrong)
    checks: list[Callable[[], None]] = []
    if all(error.path for error in wrong):  # Without its names nothing can be said of the whole.
        checks.append(lambda: plugin.validate(meanings(plugin.properties_schema, values)))
        if plugin.has_rules_in_stack:
            checks.append(lambda: plugin.validate_in_stack(definition, resources))
    for check in checks:
        try:
            check()
        except PropertyError as error:
            wrong += [error, *error.others]
    return wrong


def _other_type_hint(name: str, definition: ResourceDefinition, registry: ResourceRegistry) -> str:
    """Return that other types of the same service have the property; "": none has, or too many have."""
    service = definition.type.rpartition("::")[0]
    types = [
        type_name
        for type_name in registry.names()
        if type_name.rpartition("::")[0] == service and name in registry.get(type_name).properties_schema
    ]
    return f"; it is a property of {' and '.join(types)}" if 0 < len(types) <= _MOST_TYPES else ""


def _check_policies(definition: ResourceDefinition, plugin: ResourceType, errors: ErrorList) -> None:
    path = ("resources", definition.name)
    if definition.deletion_policy == "Snapshot" and not plugin.snapshot_on_delete:
        message = f'"Snapshot" deletion policy not supported for {definition.declared_type}'
        errors.add(TemplateError(f"{message}: write Delete or Retain", (*path, "deletion_policy")))
    if not definition.update_policy and not plugin.update_policy_schema:
        return
    wrong: list[PropertyError] = []
    known_properties(plugin.update_policy_schema, definition.update_policy, wrong)
    for error in wrong:
        errors.add(InvalidProperty(error.message, (*path, "update_policy", *error.path)))


def _check_references(
    references: Iterable[Reference],
    path: tuple[str, ...],
    resources: Mapping[str, ResourceDefinition],
    registry: ResourceRegistry,
    errors: ErrorList,
) -> None:
    for reference in references:
        if not reference.attribute or reference.resource not in resources:
            continue
        plugin_type = resources[reference.resource].type
        try:
            schema = registry.get(plugin_type).attributes_schema
        except UnknownType:
            continue  # The error of the resource itself names its type.
        if not has_attribute(schema, reference.attribute):
            hint = closest(reference.attribute, schema)
            text = (
                f"The Referenced Attribute ({reference.resource} {reference.attribute}) is incorrect."
                f" Its type has no such attribute{hint}"
            )
            errors.add(UnknownAttribute(text, path))


def check_storable(plan: CompiledTemplate, errors: ErrorList) -> None:
    """Refuse texts that some databases cannot hold in a column.

    :param errors: gets an error for each text that is not Unicode, or has a NUL character.
    """
    texts: list[tuple[str, tuple[str, ...]]] = [(plan.description, ("description",))]
    for name, definition in plan.resources.items():
        texts += [(name, ("resources",)), (definition.declared_type, ("resources", name, "type"))]
    for text, path in texts:
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            errors.add(TemplateError("a text must be Unicode without NUL characters", path))
