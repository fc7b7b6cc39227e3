"""The goals of nested stacks, as they follow from the definitions of their parents' resources."""

from collections.abc import Callable, Mapping

from ..resources.contract.children import ChildGoal, ChildInputs
from ..sealing.stored import StoredLookup
from ..shapes import Json, JsonMap
from ..template.environment import (
    Environment,
    as_document,
    nested_environment,
    parse_environment,
)
from ..template.residual import evaluate
from .context import EngineContext
from .planning.requests import Goal


def opened_environment(
    context: EngineContext,
    stored: JsonMap,
    files: Mapping[str, str],
    unseal: Callable[[str], Json],
) -> Environment:
    """Return a stack's environment in clear, with the operator's below it.

    :param stored: the environment as it is stored.
    :param files: the files of the stack.
    :param unseal: opens the token of a secret.
    """
    environment = parse_environment(evaluate(stored, StoredLookup(unseal)))
    operator = context.registry.operator
    return environment if operator is None else operator.under(environment, files)


def goal_of_child(
    goal: ChildGoal,
    resource: tuple[str, str],
    facade: JsonMap,
    *,
    environment: Environment,
    files: Mapping[str, str],
) -> Goal:
    """Return the complete goal of the child of a resource, from which it is compiled.

    :param resource: its name, and its type as declared.
    :param environment, files: environment and files of the parent; see opened_environment.
    """
    return Goal(
        template=goal.template,
        environment=as_document(nested_environment(environment, *resource)),
        files=files,
        parameters=goal.parameters,
        facade=facade,
        generated=goal.generated,
        secret=goal.secret,
    )


def inputs_of_child(
    context: EngineContext,
    stored: JsonMap,
    files: Mapping[str, str],
    resource: tuple[str, str],
    unseal: Callable[[str], Json],
) -> ChildInputs:
    """Return the inputs of a possible child of a resource, without the operator's parts.

    :param stored, files, unseal: the arguments of `opened_environment`.
    :param resource: its name, and its type as declared.
    """
    environment = parse_environment(evaluate(stored, StoredLookup(unseal)))
    operator = context.registry.operator
    operator_files = {} if operator is None else operator.templates
    stack_files = {name: text for name, text in files.items() if name not in operator_files}
    return ChildInputs(stack_files, as_document(nested_environment(environment, *resource)))
