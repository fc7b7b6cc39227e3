"""A goal: its environment, and the names of parameters that it hides; pure.

A name that any template of a tree of stacks declares hidden is hidden in all of the tree.  Its values are
sealed in each environment, among the parameters of each stack, and in every value made of them.  The names
are found before the root is compiled, and listed in the environment's ``encrypted_param_names``, which each
nested stack gets from the stack around it.
"""

import typing
from collections.abc import Callable, Iterable
from dataclasses import replace

from ...shapes import Json, JsonMap
from ...template.budget import Budget, charged_at
from ...template.compile import Limits
from ...template.environment import Environment, as_document, parse_environment
from ...template.errors import LimitExceeded
from ...template.hidden import hidden_names
from ...template.language import CompiledTemplate, is_template_name
from ...template.merging import Named, merge_environments
from ...template.operator_environment import OperatorEnvironment
from ...template.parameters import declarations_of, declared_names
from ...template.residual import holds_secret, is_deferred, mapping, members, quote, sealed
from .requests import EXISTING, Goal

SECRET_TEMPLATE = (
    "must not contain the value of a hidden parameter, because a template is stored and shown; pass it "
    "as a parameter of the nested stack"
)
_HOLDERS = frozenset(
    {"template", "type", "properties", "resource", "resource_def", "resource_properties", "resources"}
)
"""Keys in the properties of nested types under which a template, or the name of one, may be."""


def with_environment(
    goal: Goal,
    budget: Budget,
    template: JsonMap,
    limits: Limits,
    operator: OperatorEnvironment | None,
    *,
    tree: bool,
) -> tuple[Goal, Environment]:
    """Return the goal and its whole environment.

    The order matters: templates of the operator's hide names, too, so its environment comes before the search
    for hidden names; and these names decide which files may not be stored.

    :param tree: the stack is a root: the names that its tree hides are searched.
    """
    environment = _charged_environment(goal, template, budget)
    if goal.retained:
        goal, environment = _without_lost(goal, environment, template)
    if operator is not None:
        environment = operator.under(environment, goal.files)
    if tree:
        environment = _hide(environment, goal, budget, template, limits)
        if goal.environment_files:
            goal = _without_secrets(goal, environment)
    return goal, environment


def _hide(
    environment: Environment, goal: Goal, budget: Budget, template: JsonMap, limits: Limits
) -> Environment:
    """Return a root stack's environment with the names of all parameters that its tree hides.

    :raises LimitExceeded: the search for the names takes too long.
    """
    documents = [template, *goal.files.values(), goal.parameters]
    documents += [environment.parameters, environment.parameter_defaults]
    most = limits.template_bytes
    try:
        names = hidden_names(documents, depth=limits.deepest, max_bytes=most, budget=budget)
    except LimitExceeded as error:
        raise LimitExceeded(error.message, ("files",)) from error
    return hiding(environment, names) if names else environment


def hiding(environment: Environment, names: typing.AbstractSet[str]) -> Environment:
    """Return the environment with more names of hidden parameters."""
    return replace(environment, encrypted_param_names=sorted({*environment.encrypted_param_names, *names}))


def _without_secrets(goal: Goal, environment: Environment) -> Goal:
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
            if is_deferred(place) and not members(place):
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


def _without_lost(goal: Goal, environment: Environment, template: JsonMap) -> tuple[Goal, Environment]:
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


def _charged_environment(goal: Goal, template: JsonMap, budget: Budget) -> Environment:
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
    names = set(hidden)
    for section in ("parameters", "parameter_defaults"):
        if not names.isdisjoint(plain[section]):
            document[section] = sealed_values(plain[section], names, seal)
    return document


def sealed_values(values: JsonMap, hidden: Iterable[str], seal: Callable[[Json], str]) -> Json:
    """Return values by name as they are stored: hidden ones sealed, the others quoted.

    :param seal: makes the token of a secret.
    """
    names = set(hidden)
    return mapping(
        {name: sealed(seal(value)) if name in names else quote(value) for name, value in values.items()}
    )
