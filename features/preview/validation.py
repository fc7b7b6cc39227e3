"""Checking a goal without creating a stack: validation of a template, and the preview of a creation."""

import contextlib
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db import stacks
from ...db.errors import NameTaken
from ...engine.context import Compiled, EngineContext
from ...engine.planning.goal import read_environment
from ...engine.planning.nested_check import missing
from ...engine.planning.requests import PREVIEWED, CreateRequest, Goal, Preview, Validated
from ...engine.quotas import QuotaName
from ...engine.requested import compile_requested
from ...shapes import Json
from ...template.budget import Budget
from ...template.compile import describe
from ...template.errors import ErrorList, TemplateError
from ...template.load import load_document, load_template
from .creation import previewed_resources
from .described import described_environment, described_stack, nested_parameters
from .template_findings import find_repeated, find_warnings

_DOCUMENTS = (".yaml", ".yml", ".template")
"""Ends of the names of files that are templates or environments."""
NO_ID = "None"
"""The id of a stack that is only checked; Heat's."""


def preview_creation(context: EngineContext, request: CreateRequest) -> Preview:
    """Return the stack that a creation would make.

    :raises TemplateError: the goal is wrong.
    :raises NameTaken: a living stack has the name.
    :raises LimitExceeded: the project has as many stacks as it may have.
    """
    quotas = context.settings.quotas

    def check(conn: Connection) -> None:
        if stacks.is_taken(conn, request.project_id, request.name):
            raise NameTaken(request.name)
        if quotas is not None and request.is_limited:
            quotas.check_room(conn, request.project_id, QuotaName.STACKS)

    context.database.read(check)
    request = replace(request, goal=replace(request.goal, purpose=PREVIEWED))
    compiled = _compile(context, request)
    registry = context.registry.usable
    return Preview(
        name=request.name,
        description=compiled.plan.description,
        parameters=compiled.parameter_view,
        timeout_mins=request.timeout_mins,
        disable_rollback=request.disable_rollback,
        tags=request.tags,
        resources=previewed_resources(compiled.plan, compiled.nested, registry, request.name),
    )


def validate_goal(
    context: EngineContext,
    project_id: str,
    goal: Goal,
    *,
    nested: bool = False,
    ignores_unavailable: bool = False,
) -> dict[str, Json]:
    """Return the body of POST /validate: the template's parameters; values need not be given.

    Where some are missing, only that can be judged which does not depend on them.

    :param nested: whether the parameters of the nested stacks are returned, too.
    :param ignores_unavailable: whether resources of types that are not available are left out.
    :raises TemplateError: the template or the environment is wrong; further errors are in `others`.
    """
    limits = context.settings.limits
    budget = Budget(limits.budget)
    template = load_template(goal.template, max_bytes=limits.template_bytes)
    described = describe(template, ErrorList())  # Its errors are among those of the whole, below.
    environment = read_environment(goal, template, budget)
    if (operator := context.registry.operator) is not None:
        environment = operator.under(environment, goal.files)
    values = {**environment.parameters, **goal.parameters}
    lacking = frozenset(missing(described["Parameters"], values, environment))
    purpose = Validated(keeps_nested=nested, without_unavailable=ignores_unavailable)
    goal = replace(goal, unknown=lacking, budget=budget, purpose=purpose)
    request = CreateRequest(project_id=project_id, name="validated", goal=goal)
    compiled = _compile(context, request)
    view = described_stack(described, environment, values)
    if below := nested_parameters(compiled.nested, budget):
        view["NestedParameters"] = below
    warnings = [
        *find_repeated(_documents(goal, budget)),
        *find_warnings(template, compiled.plan, lacking, compiled.warnings),
    ]
    if warnings:
        view["Warnings"] = warnings
    types = [item.declared_type for item in compiled.plan.resources.values()]
    return {**view, "Environment": described_environment(environment, values, types)}


def _compile(context: EngineContext, request: CreateRequest) -> Compiled:
    return compile_requested(
        context,
        request.goal,
        name=request.name,
        stack_id=NO_ID,
        project_id=request.project_id,
        root_id="",
    )


def _documents(goal: Goal, budget: Budget) -> dict[str, str]:
    """Return the texts of a goal that are YAML, by their names; a file without an error in it only."""
    texts = {"template": goal.template} if isinstance(goal.template, str) else {}
    for name, text in goal.files.items():
        if name.endswith(_DOCUMENTS):
            with contextlib.suppress(TemplateError):
                load_document(text, name, budget)
                texts[name] = text
    return texts
