"""The environment of a goal: its environment files and its environment, merged into one; pure."""

import typing
from collections.abc import Iterable, Mapping

from ..sealing.sealer import BoundSealer
from ..template.budget import Budget, charged_at
from ..template.compile import find_version
from ..template.environment import Environment, as_document, parse_environment
from ..template.merging import Named, merge_environments
from ..template.parameters import parse_declarations
from ..template.residual import mapping, quote, sealed
from .requests import Goal

Json = typing.Any


def read_environment(goal: Goal, template: Mapping[str, Json], budget: Budget) -> Environment:
    """Return the goal's environment files and environment as one.

    :raises TemplateError: a file is missing or wrong.
    """
    declarations = parse_declarations(template.get("parameters"), find_version(template))
    named = Named(goal.files, goal.environment_files, budget)
    merged = merge_environments(named, goal.environment, declarations)
    return parse_environment(merged, budget)


def charged_environment(goal: Goal, template: Mapping[str, Json], budget: Budget) -> Environment:
    """Return the goal's environment, and charge it with the parameters: both are stored."""
    environment = read_environment(goal, template, budget)
    with charged_at("parameters"):
        budget.take_stored(goal.parameters)
    with charged_at("environment"):
        budget.take_stored(as_document(environment))
    return environment


def stored_environment(environment: Environment, hidden: Iterable[str], sealer: BoundSealer) -> Json:
    """Return the environment as it is stored: the values of hidden parameters sealed."""
    plain = as_document(environment)
    document = {section: quote(value) for section, value in plain.items()}
    for section in ("parameters", "parameter_defaults"):
        document[section] = sealed_values(plain[section], hidden, sealer)
    return document


def sealed_values(values: Mapping[str, Json], hidden: Iterable[str], sealer: BoundSealer) -> Json:
    """Return values by name as they are stored: hidden ones sealed, the others quoted."""
    names = set(hidden)
    return mapping(
        {
            name: sealed(sealer.seal(value)) if name in names else quote(value)
            for name, value in values.items()
        }
    )
