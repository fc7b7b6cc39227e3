"""Checks of the names by which a stack and those nested in it use each other; pure."""

import typing
from collections.abc import Iterable, Mapping

from ..template.environment import Environment
from ..template.errors import InvalidReference, ParameterMissing, UnknownParameter
from ..template.language import CompiledTemplate, OutputDefinition, ResourceDefinition

Json = typing.Any
COMMON = frozenset({"outputs", "show", "stack_name"})
"""Attributes that every nested stack has beside its outputs."""


def check_names(declared: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> None:
    """Check the parameters given to a nested stack against those that its template declares.

    :raises UnknownParameter, ParameterMissing: they differ.
    """
    if unknown := sorted(set(given) - set(declared)):
        raise UnknownParameter(f'The Parameter "{unknown[0]}" was not defined in template.', ("properties",))
    if lacking := missing(declared, given, environment):
        raise ParameterMissing(f"The Parameter ({lacking[0]}) was not provided.", ("properties",))


def missing(declared: Mapping[str, Json], given: Mapping[str, Json], environment: Environment) -> list[str]:
    """Return the names of the parameters that have no value."""
    return [
        name
        for name, schema in declared.items()
        if "Default" not in schema and name not in given and name not in environment.parameter_defaults
    ]


def check_attributes(name: str, template: Mapping[str, Json], used: Iterable[str]) -> None:
    """Check the attributes of a provider template's resource: they are its outputs.

    :raises InvalidReference: it has no such output.
    """
    outputs = template.get("outputs")
    known = {*COMMON, *(outputs if isinstance(outputs, Mapping) else ())}
    for attribute in used:
        if attribute and attribute not in known:
            raise InvalidReference(f"The Referenced Attribute ({name} {attribute}) is incorrect.")


def attributes_used(plan: CompiledTemplate) -> dict[str, dict[str, None]]:
    """Return the attributes that a template uses of each of its resources."""
    found: dict[str, dict[str, None]] = {}
    users: Iterable[ResourceDefinition | OutputDefinition] = (
        *plan.resources.values(),
        *plan.outputs.values(),
    )
    for user in users:
        for reference in user.references:
            found.setdefault(reference.resource, {})[reference.attribute or ""] = None
    return found
