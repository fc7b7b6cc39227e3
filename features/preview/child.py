"""The stack that a resource would be after an update, as far as it is known before it."""

from dataclasses import replace

from ...engine.children import goal_of_child, opened_environment
from ...engine.context import Compiled, EngineContext
from ...engine.planning.goal import secret_parameters
from ...engine.planning.nested_check import static_facade, static_goal
from ...resources.contract.children import ChildGoal
from ...resources.nested.base import NestedType
from ...resources.nested.groups import GroupResource
from ...resources.nested.parameterize import parameterize
from ...template.budget import Budget
from ...template.compile import Identity
from ...template.errors import LimitExceeded, TemplateError
from ...template.language import ResourceDefinition
from .plan import UpdatePreview


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
    if not isinstance(plugin, NestedType) or isinstance(plugin, GroupResource):
        return None
    try:
        known_values = preview.known_properties(definition)
        goal = None if known_values is None else static_goal(definition, plugin, known_values, parent.files)
        if goal is None:
            return None
        secret = secret_parameters(
            goal.parameters, preview.sealed_properties(definition), lambda value: False
        )
        goal = replace(parameterize(goal, None), secret=secret)
        return compile_goal(context, definition, goal, parent, identity, work)
    except LimitExceeded:
        raise
    except TemplateError:
        return None


def compile_goal(
    context: EngineContext,
    definition: ResourceDefinition,
    goal: ChildGoal,
    parent: Compiled,
    identity: Identity,
    work: Budget,
) -> Compiled:
    """Compile the goal of the child of a resource.

    :param goal: the goal with its secrets as parameters, and their names.
    :param parent: the goal of the stack around it.
    :raises TemplateError: the goal is wrong.
    """
    child_goal = goal_of_child(
        goal,
        (definition.name, definition.declared_type),
        static_facade(definition),
        environment=opened_environment(context, parent.environment, parent.files, parent.sealer.open),
        files=parent.files,
    )
    return context.compiler.compile(replace(child_goal, budget=work), identity, parent.sealer, tree=False)
