"""Compiling the goal that a user requests."""

from dataclasses import replace

from ..template.budget import Budget
from ..template.compile import Identity
from ..template.merging import Named, parameter_names
from .context import Compiled, EngineContext
from .planning.requests import Goal


def compile_requested(
    context: EngineContext, goal: Goal, *, name: str, stack_id: str, project_id: str, root_id: str
) -> Compiled:
    """Compile the goal that a request has for a stack, within one budget.

    :param root_id: the root of the tree to which the stack belongs; "": nothing of it will be stored.
    :raises TypeForbidden: the request may not use a type.
    :raises TemplateError: the goal is wrong; further errors of the template are in `others`.
    """
    identity = Identity(name, stack_id, project_id)
    sealer = context.sealer.of_stack(project_id, root_id)
    goal = replace(goal, budget=goal.budget or Budget(context.settings.limits.budget))
    return context.compiler.compile(goal, identity, sealer)


def requested_parameters(context: EngineContext, goal: Goal) -> set[str]:
    """Return the names of the parameters that have values in the environment of a request, or in its files.

    :raises TemplateError: a file is no environment.
    """
    budget = Budget(context.settings.limits.budget)
    return parameter_names(Named(goal.files, goal.environment_files, budget), goal.environment)
