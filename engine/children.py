"""The goals of nested stacks, as they follow from the definitions of their parents' resources."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..resources.contract.children import ChildGoal, ChildInputs
from ..resources.nested.base import NestedType
from ..resources.nested.parameterize import parameterize
from ..sealing.stored import StoredLookup
from ..shapes import Json, JsonMap
from ..template.budget import Budget
from ..template.compile import Identity
from ..template.environment import (
    Environment,
    as_document,
    nested_environment,
    parse_environment,
)
from ..template.errors import LimitExceeded, TemplateError
from ..template.language import ResourceDefinition
from ..template.residual import evaluate
from .context import Compiled, EngineContext
from .planning.goal import secret_parameters
from .planning.nested_check import static_facade, static_goal
from .planning.preview import UpdatePreview
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


def compile_previewed_child(
    context: EngineContext,
    definition: ResourceDefinition,
    preview: UpdatePreview,
    parent: Compiled,
    identity: Identity,
    work: Budget,
) -> Compiled | None:
    """Compile the child of a resource as it would be after an update.

    :param preview: preview of the parent.
    :param work: budget of all that is compiled for the preview.
    :returns: None: the child depends on values which are not known before the update.
    :raises LimitExceeded: the preview takes too much work.
    """
    plugin = context.registry.get(definition.type)
    if not isinstance(plugin, NestedType) or not plugin.previewable:
        return None
    try:
        known_values = preview.known_properties(definition)
        goal = None if known_values is None else static_goal(definition, plugin, known_values, parent.files)
        if goal is None:
            return None
        secret = secret_parameters(
            goal.parameters, preview.sealed_properties(definition), lambda value: False
        )
        child_goal = goal_of_child(
            replace(parameterize(goal, None), secret=secret),
            (definition.name, definition.declared_type),
            static_facade(definition),
            environment=opened_environment(context, parent.environment, parent.files, parent.sealer.open),
            files=parent.files,
        )
        child_goal = replace(child_goal, budget=work)
        return context.compiler.compile(child_goal, identity, parent.sealer, tree=False)
    except LimitExceeded:
        raise
    except TemplateError:
        return None
