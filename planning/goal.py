"""A goal: its environment, the names that it hides, and checks of the template compiled from it; pure.

A name that any template of a tree of stacks declares hidden is hidden in all of the tree.  Its values are
sealed in each environment, among the parameters of each stack, and in every value made of them.  The names
are found before the root is compiled, and listed in the environment's ``encrypted_param_names``, which each
nested stack gets from the stack around it.
"""

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ..resources.errors import AbsentType, PropertyError, UnknownProperty, UnknownType
from ..resources.heat_types import HEAT_TYPES
from ..resources.plugin import ResourceType
from ..resources.properties import known_properties
from ..resources.registry import ResourceRegistry
from ..resources.schema import has_attribute
from ..shapes import Json, JsonMap
from ..template.budget import Budget, charged_at
from ..template.compile import Limits
from ..template.environment import Environment, as_document, parse_environment
from ..template.errors import (
    ErrorList,
    InvalidProperty,
    LimitExceeded,
    TemplateError,
    UnavailableType,
    UnknownAttribute,
    WordedByHeat,
    named_at_once,
)
from ..template.hidden import hidden_names
from ..template.language import (
    CompiledTemplate,
    Reference,
    ResourceDefinition,
    is_template_name,
)
from ..template.merging import Named, merge_environments
from ..template.parameters import declarations_of, declared_names
from ..template.residual import Lookup, holds_secret, is_deferred, is_node, mapping, members, quote, sealed
from ..template.suggestions import closest
from .requests import EXISTING, Goal, MayUse, TypeForbidden, TypeUnavailable

NO_CLOUD = (
    "this Stoker has no access to a cloud. With Keystone it has one: [api] auth_strategy = keystone; "
    "see doc/operation.md#trusts, or try `make demo-cloud`."
)

SECRET_TEMPLATE = (
    "must not be made of the value of a hidden parameter, for a template is stored and shown; pass it "
    "as a parameter of the nested stack"
)
_HOLDERS = frozenset(
    {"template", "type", "properties", "resource", "resource_def", "resource_properties", "resources"}
)
"""Keys in the properties of nested types under which a template, or the name of one, may be."""
_MOST_TYPES = 2
"""Types that are named as those that have a property."""
DEEPEST = 20
"""Levels of templates inside of texts that are searched where nested stacks may be as deep as they like."""


def hide(environment: Environment, goal: Goal, template: JsonMap, limits: Limits) -> Environment:
    """Return a root stack's environment with the names of all parameters that its tree hides.

    :raises LimitExceeded: the search for the names takes too long.
    """
    documents = [template, *goal.files.values(), goal.parameters]
    documents += [environment.parameters, environment.parameter_defaults]
    budget = goal.budget or Budget(limits.budget)
    most = limits.template_bytes
    try:
        names = hidden_names(documents, depth=limits.depth or DEEPEST, max_bytes=most, budget=budget)
    except LimitExceeded as error:
        raise LimitExceeded(error.message, ("files",)) from error
    return hiding(environment, names) if names else environment


def hiding(environment: Environment, names: typing.AbstractSet[str]) -> Environment:
    """Return the environment with more names of hidden parameters."""
    return replace(environment, encrypted_param_names=sorted({*environment.encrypted_param_names, *names}))


def without_secrets(goal: Goal, environment: Environment) -> Goal:
    """Return the goal without the files that were merged into its environment and name hidden parameters.

    These files are not needed any more.  Stored, they would hold values in clear that are sealed in the
    environment.
    """
    merged = {
        name
        for name in goal.environment_files
        if name != EXISTING
        and any(secret in goal.files[name] for secret in environment.encrypted_param_names)
    }
    return replace(goal, files={name: text for name, text in goal.files.items() if name not in merged})


def leaves_open(plan: CompiledTemplate, is_nested: Callable[[str], bool]) -> bool:
    """Return whether the template of a nested stack is made of values that are not known before a step.

    The parameters that such a template hides are not known yet.
    """
    return any(
        _is_open(definition.properties)
        for definition in plan.resources.values()
        if is_nested(definition.type) and not is_template_name(definition.type)
    )


def _is_open(tree: Json, *, may_hold: bool = True) -> bool:
    """Return whether a tree may hold a template that is not known yet.

    :param may_hold: a template may be at the place of the tree.
    """
    if parts := members(tree):
        inside = ((name, value) for name, value in parts.items() if name != "parameters")
        return any(_is_open(value, may_hold=name in _HOLDERS) for name, value in inside)
    if isinstance(tree, list):
        return any(_is_open(item, may_hold=may_hold) for item in tree)
    return may_hold and is_deferred(tree)


def secret_parameters(supplied: JsonMap, stored: Json, is_secret: Callable[[Json], bool]) -> frozenset[str]:
    """Return the names of a child's parameters whose values hold secrets.

    :param supplied: the parameters, in clear.
    :param stored: the properties of the child's resource, with secrets still sealed.  The properties of a
        child whose template is a file are its parameters; other children have them in ``parameters``.
    :param is_secret: decides for the value of a parameter that is not among the properties.
    """
    places = (stored, members(stored).get("parameters"))

    def judged(name: str, value: Json) -> bool:
        for place in places:
            if is_node(place) and is_deferred(place) and not members(place):
                return holds_secret(place)
            if name in members(place):
                return holds_secret(members(place)[name])
        return is_secret(value)

    return frozenset(name for name, value in supplied.items() if judged(name, value))


def template_is_secret(type_name: str, properties: Json) -> bool:
    """Return whether the template of a nested stack is made of a secret.

    :param properties: the properties of the nested stack's resource, with secrets still sealed.
    """
    if is_template_name(type_name):
        return False
    return holds_secret(members(properties).get("template") if members(properties) else properties)


def without_lost(goal: Goal, environment: Environment, template: JsonMap) -> tuple[Goal, Environment]:
    """Return the goal and its environment without values of parameters that are lost."""
    lost = goal.retained.difference(declared_names(template))
    if not lost:
        return goal, environment

    def remaining(values: JsonMap) -> dict[str, Json]:
        return {name: value for name, value in values.items() if name not in lost}

    return (
        replace(goal, parameters=remaining(goal.parameters)),
        replace(environment, parameters=remaining(environment.parameters)),
    )


def read_environment(goal: Goal, template: JsonMap, budget: Budget) -> Environment:
    """Return the goal's environment files and environment as one.

    :raises TemplateError: a file is missing or wrong.
    """
    if not goal.environment and not goal.environment_files:
        return Environment()
    if not goal.environment_files:
        return parse_environment(dict(goal.environment), budget)
    declarations = declarations_of(template)
    named = Named(goal.files, goal.environment_files, budget, base=EXISTING)
    merged = merge_environments(named, goal.environment, declarations)
    return parse_environment(merged, budget)


def charged_environment(goal: Goal, template: JsonMap, budget: Budget) -> Environment:
    """Return the goal's environment, and charge it with the parameters: both are stored."""
    environment = read_environment(goal, template, budget)
    with charged_at("parameters"):
        budget.take_stored(goal.parameters)
    with charged_at("environment"):
        budget.take_stored(as_document(environment))
    return environment


def stored_environment(environment: Environment, hidden: Iterable[str], seal: Callable[[Json], str]) -> Json:
    """Return the environment as it is stored: the values of hidden parameters sealed.

    :param seal: makes the token of a secret.
    """
    plain = as_document(environment)
    document = {section: quote(value) for section, value in plain.items()}
    for section in ("parameters", "parameter_defaults"):
        document[section] = sealed_values(plain[section], hidden, seal)
    return document


def sealed_values(values: JsonMap, hidden: Iterable[str], seal: Callable[[Json], str]) -> Json:
    """Return values by name as they are stored: hidden ones sealed, the others quoted.

    :param seal: makes the token of a secret.
    """
    names = set(hidden)
    return mapping(
        {name: sealed(seal(value)) if name in names else quote(value) for name, value in values.items()}
    )


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

    :raises TypeUnavailable: a resource calls one.
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
            _check_resource(definition, registry, plan.resources, of_resource)
            if of_resource.is_empty and definition.external_id is None:
                plugin = registry.get(definition.type)
                if plugin.chosen_by or plugin.renamed_to:
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


def _check_resource(
    definition: ResourceDefinition,
    registry: ResourceRegistry,
    resources: Mapping[str, ResourceDefinition],
    errors: ErrorList,
) -> None:
    path = ("resources", definition.name)
    try:
        plugin = registry.get(definition.type)
        if plugin.variant_of is not None:
            raise UnknownType(f"The Resource Type ({definition.type}) could not be found.")
    except UnknownType as error:
        kind = UnavailableType if isinstance(error, AbsentType) else WordedByHeat
        errors.add(kind(str(error), (*path, "type")))
    else:
        if definition.external_id is None:  # Nothing is made from the properties of an existing resource.
            _check_properties(definition, registry, resources, errors)
            _check_policies(definition, plugin, errors)
    if registry.is_nested(definition.type) and template_is_secret(definition.type, definition.properties):
        errors.add(TemplateError(SECRET_TEMPLATE, (*path, "properties", "template")))
    _check_references(definition.references, path, resources, registry, errors)


def _check_properties(
    definition: ResourceDefinition,
    registry: ResourceRegistry,
    resources: Mapping[str, ResourceDefinition],
    errors: ErrorList,
) -> None:
    path = ("resources", definition.name, "properties")
    plugin = registry.get(definition.type)
    wrong: list[PropertyError] = []
    values = known_properties(plugin.properties_schema, definition.properties, wrong)
    checks: list[Callable[[], None]] = []
    if all(error.path for error in wrong):  # Without its names nothing can be said of the whole.
        checks.append(lambda: plugin.validate(values))
        if plugin.has_rules_in_stack:
            checks.append(lambda: plugin.validate_in_stack(definition, resources))
    for check in checks:
        try:
            check()
        except PropertyError as error:
            wrong += [error, *error.others]
    for problem in wrong:
        message = problem.message
        if isinstance(problem, UnknownProperty) and not problem.path:
            message = problem.text(_other_type_hint(problem.name, definition, registry))
        errors.add(InvalidProperty(message, (*path, *problem.path)))


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
