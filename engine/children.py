"""Nested stacks as the resources of their parents define them: their goals, and the members of groups."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..db.rows import Resource, Stack
from ..db.states import Status
from ..resources.contract.children import ChildGoal, ChildInputs, GroupMember, in_order
from ..resources.nested.parameterize import restore_values
from ..sealing.secrets import Secrets
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


def definitions_inside(
    child: Stack, template: JsonMap, unseal: Callable[[str], Json]
) -> Mapping[str, JsonMap]:
    """Return the resources' definitions in the generated template of a child, in clear.

    :param unseal: opens the token of a secret.
    """
    return restore_values(template, evaluate(child.parameters, StoredLookup(unseal)))


def members_of(
    rows: Iterable[Resource],
    definitions: Mapping[str, JsonMap],
    secrets: Secrets,
    has_template: Callable[[Resource], Callable[[str], bool]],
) -> Sequence[GroupMember]:
    """Return the members that a group has, in their order.

    :param rows: the child's resources but those that were replaced.
    :param has_template: returns what compares a type's name with the template of a resource.
    """
    return in_order(
        GroupMember(
            name=row.name,
            definition=definitions.get(row.name),
            reference=secrets.open_value(row.reference_id),
            is_failed=row.status == Status.FAILED,
            created_at=row.created_at,
            physical_id=row.physical_id,
            has_template=has_template(row),
        )
        for row in rows
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
