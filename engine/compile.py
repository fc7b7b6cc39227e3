"""From a user's goal to a compiled and validated template, and to what is stored of it."""

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..planning.group_attributes import with_requested_attributes
from ..planning.nested_check import Branch, TemplateTree
from ..planning.requests import EXISTING, Goal, MayUse, TypeForbidden, check_storable
from ..resources.errors import PropertyError, UnknownType
from ..resources.plugin import ResourceType
from ..resources.properties import validate_properties
from ..resources.registry import ResourceRegistry
from ..resources.schema import has_attribute
from ..sealing.sealer import BoundSealer
from ..template.budget import Budget, charged_at
from ..template.compile import Identity, Limits, Source, compile_template
from ..template.environment import Environment, as_document, parse_environment
from ..template.errors import InvalidReference, TemplateError
from ..template.load import load_template
from ..template.merging import Named, merge_environments
from ..template.model import CompiledTemplate, Reference, ResourceDefinition
from ..template.parameters import parameter_strings, parse_declarations
from ..template.residual import mapping, quote, sealed
from ..template.suggestions import closest
from ..template.versions import find_version
from .hidden_parameters import SECRET_TEMPLATE, hide, hiding, leaves_open, template_is_secret, without_secrets

Json = typing.Any


@dataclass(frozen=True)
class Compiled:
    """A goal that was found good.

    :ivar environment: as stored: the values of hidden parameters sealed.
    :ivar parameters: of the request, as stored.
    :ivar sealer: that of the tree of stacks, which has sealed them.
    """

    template: Mapping[str, Json]
    environment: Mapping[str, Json]
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    plan: CompiledTemplate
    sealer: BoundSealer

    @property
    def outputs(self) -> dict[str, Json]:
        """As stored on the stack."""
        return {
            name: {"value": output.value, "description": output.description}
            for name, output in self.plan.outputs.items()
        }

    def parameter_view(self, identity: Identity) -> dict[str, str]:
        """Every parameter as the API shows it, with the pseudo parameters."""
        return {**identity.pseudo(), **parameter_strings(self.plan.parameters)}


def compile_goal(
    goal: Goal,
    *,
    identity: Identity,
    catalogue: ResourceRegistry,
    limits: Limits,
    sealer: BoundSealer,
    tree: bool = True,
) -> Compiled:
    """Compile a goal and check it against the resource types.

    :param sealer: that of the tree of stacks to which the stack belongs.
    :param tree: also what is nested in it; a child was checked when its root was.
    :raises TypeForbidden: a type must not be used.
    :raises TemplateError: something in it is wrong; the error says where and what would be right.
    """
    template = load_template(goal.template, max_bytes=0 if goal.generated else limits.template_bytes)
    goal = replace(goal, budget=goal.budget or Budget(limits.budget))
    environment = _charged_environment(goal, template)
    if tree:
        environment = hide(environment, goal, template, limits)
        goal = without_secrets(goal, environment)
    source = Source(
        template,
        environment,
        goal.files,
        goal.parameters,
        goal.facade,
        secret=goal.secret,
        budget=goal.budget,
    )
    using = (identity, catalogue, sealer)
    plan = _planned(source, goal, limits, using)
    if tree:
        _check_tree(plan, environment, goal, limits, using)
        if leaves_open(plan, catalogue.is_nested):
            environment = hiding(environment, environment.parameter_defaults.keys())
            plan = _planned(replace(source, environment=environment), goal, limits, using)
    hidden = {name for name, parameter in plan.parameters.items() if parameter.hidden}
    if not goal.generated:
        environment = hiding(environment, hidden - goal.secret)
    hidden.update(environment.encrypted_param_names)
    plain = as_document(environment)
    document = {section: quote(value) for section, value in plain.items()}
    for section in ("parameters", "parameter_defaults"):
        document[section] = _sealed(plain[section], hidden, sealer)
    return Compiled(
        template=template,
        environment=document,
        files={name: text for name, text in goal.files.items() if name != EXISTING},
        parameters=_sealed(goal.parameters, hidden, sealer),
        plan=plan,
        sealer=sealer,
    )


def _planned(
    source: Source, goal: Goal, limits: Limits, using: tuple[Identity, ResourceRegistry, BoundSealer]
) -> CompiledTemplate:
    identity, catalogue, sealer = using
    plan = compile_template(source, identity=identity, limits=limits, seal=sealer.seal)
    check_allowed(plan, goal.may_use)
    check_types(plan, catalogue)
    check_storable(plan)
    return with_requested_attributes(plan, catalogue)


def _check_tree(
    plan: CompiledTemplate,
    environment: Environment,
    goal: Goal,
    limits: Limits,
    using: tuple[Identity, ResourceRegistry, BoundSealer],
) -> None:
    _, catalogue, sealer = using

    def compile_branch(branch: Branch) -> CompiledTemplate:
        source = Source(
            branch.template,
            branch.environment,
            goal.files,
            branch.parameters,
            branch.facade,
            secret=branch.secret,
            budget=goal.budget,
        )
        return _planned(source, goal, limits, using)

    tree = TemplateTree(catalogue, limits, goal.files, compile_branch, sealer.open, goal.budget or Budget())
    tree.check(plan, environment)


def _charged_environment(goal: Goal, template: Mapping[str, Json]) -> Environment:
    """Return the goal's environment, charged with the parameters: both are stored."""
    budget = goal.budget or Budget()
    environment = read_environment(goal, template, budget)
    with charged_at("parameters"):
        budget.take_stored(goal.parameters)
    with charged_at("environment"):
        budget.take_stored(as_document(environment))
    return environment


def read_environment(goal: Goal, template: Mapping[str, Json], budget: Budget) -> Environment:
    """The goal's environment files and environment as one.

    :raises TemplateError: a file is missing or wrong.
    """
    declarations = parse_declarations(template.get("parameters"), find_version(template))
    named = Named(goal.files, goal.environment_files, budget)
    merged = merge_environments(named, goal.environment, declarations)
    return parse_environment(merged, budget)


def _sealed(values: Mapping[str, Json], hidden: Iterable[str], sealer: BoundSealer) -> Json:
    names = set(hidden)
    return mapping(
        {
            name: sealed(sealer.seal(value)) if name in names else quote(value)
            for name, value in values.items()
        }
    )


def check_allowed(plan: CompiledTemplate, may_use: MayUse) -> None:
    """:raises TypeForbidden: a type must not be used."""
    for type_name in sorted({definition.type for definition in plan.resources.values()}):
        if not may_use(type_name):
            raise TypeForbidden(type_name)


def check_types(plan: CompiledTemplate, catalogue: ResourceRegistry) -> None:
    """Check every resource against its type, and every reference against the other's attributes.

    :raises TemplateError: with the path in the template.
    """
    for definition in plan.resources.values():
        path = ("resources", definition.name)
        try:
            plugin = catalogue.get(definition.type)
        except UnknownType as error:
            raise TemplateError(str(error), (*path, "type")) from error
        try:
            known = validate_properties(plugin.properties_schema, definition.properties)
            plugin.validate(known)
        except PropertyError as error:
            where = (*path, "properties", *error.path)
            raise TemplateError(f"Property error: {error.message}", where) from error
        if catalogue.is_nested(definition.type) and template_is_secret(
            definition.type, definition.properties
        ):
            raise TemplateError(SECRET_TEMPLATE, (*path, "properties", "template"))
        _check_update_policy(definition, plugin, path)
        _check_references(definition.references, path, plan.resources, catalogue)
    for name, output in plan.outputs.items():
        _check_references(output.references, ("outputs", name), plan.resources, catalogue)


def _check_update_policy(definition: ResourceDefinition, plugin: ResourceType, path: tuple[str, ...]) -> None:
    try:
        validate_properties(plugin.update_policy_schema, definition.update_policy)
    except PropertyError as error:
        message = error.message.replace("Unknown Property", "Unknown key")
        raise TemplateError(message, (*path, "update_policy", *error.path)) from error


def _check_references(
    references: Iterable[Reference],
    path: tuple[str, ...],
    resources: Mapping[str, ResourceDefinition],
    catalogue: ResourceRegistry,
) -> None:
    for reference in references:
        if not reference.attribute:
            continue
        plugin_type = resources[reference.resource].type
        try:
            schema = catalogue.get(plugin_type).attributes_schema
        except UnknownType:
            continue  # said at the resource itself
        if not has_attribute(schema, reference.attribute):
            hint = closest(reference.attribute, schema)
            raise InvalidReference(
                f"The Referenced Attribute ({reference.resource} {reference.attribute}) is incorrect{hint}",
                path,
            )
