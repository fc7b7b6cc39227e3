"""The goals that a stack has or had, as they are stored, and those that an update makes of them."""

import json
import typing
from collections.abc import Mapping
from dataclasses import replace

from ..db import content
from ..db.ids import ContentId
from ..db.queries import nesting
from ..db.rows import Stack
from ..sealing.stored import StoredLookup, in_clear
from ..shapes import Json, JsonMap
from ..template.compile import Identity
from ..template.environment import parse_environment
from ..template.errors import TemplateError
from ..template.formats import find_version, section_of
from ..template.language import Parameter
from ..template.parameters import GivenValues, check_immutable, resolve_parameters
from ..template.residual import evaluate, holds_secret
from .context import Compiled, EngineContext
from .planning.requests import EXISTING, Goal, ResourcePath, StoredData, UpdateRequest
from .requested import compile_requested, requested_parameters
from .stack_state import current_goal


def identity_of(stack: Stack) -> Identity:
    """Return the values of the stack's pseudo parameters."""
    return Identity(stack.name, stack.id, stack.project_id)


def compile_for(context: EngineContext, stack: Stack, goal: Goal) -> Compiled:
    """Compile a goal for a stack that exists.

    :raises TemplateError: the goal is wrong.
    """
    goal = _with_stored_data(context, stack, goal)
    return context.compiler.compile(goal, identity_of(stack), context.sealer_of(stack))


def compile_update(context: EngineContext, stack: Stack, request: UpdateRequest) -> Compiled:
    """Compile the goal of an update.

    :raises TemplateError: the goal is wrong; see requested.compile_requested.
    :raises ImmutableParameter: the goal changes a parameter that the template calls immutable.
    """
    goal = merged_goal(context, stack, request) if request.existing else request.goal
    compiled = compile_requested(
        context,
        _with_stored_data(context, stack, goal),
        name=stack.name,
        stack_id=stack.id,
        project_id=stack.project_id,
        root_id=stack.root_id,
    )
    check_immutable_parameters(context, stack, compiled)
    return compiled


def _with_stored_data(context: EngineContext, stack: Stack, goal: Goal) -> Goal:
    """Return the goal with what groups remember, on all levels; it is read where a group asks for it."""

    def read() -> Mapping[ResourcePath, JsonMap]:
        keys = context.registry.remembered
        rows = context.database.read(lambda conn: nesting.data_by_path(conn, stack.id, keys))
        unseal = context.sealer_of(stack).open
        by_path = {}
        for path, (plugin, stored) in rows.items():
            data = in_clear(stored, unseal) or {}
            by_path[path] = {key: data[key] for key in keys[plugin] if data.get(key)}
        return {path: data for path, data in by_path.items() if data}

    return replace(goal, stored_data=StoredData(read))


def check_immutable_parameters(context: EngineContext, stack: Stack, compiled: Compiled) -> None:
    """Check that a new goal of a stack changes no parameter that its template calls immutable.

    :raises ImmutableParameter: it does.
    """
    parameters = compiled.plan.parameters
    if any(parameter.immutable for parameter in parameters.values()):
        check_immutable(_current_parameters(context, stack), parameters)


def previous_goal(context: EngineContext, stack: Stack) -> Goal:
    """Return the stack's last complete goal; one without resources if there is none."""
    if stack.previous:
        return stored_goal(context, stack, stack.previous)
    template = _content(context, stack.template_id)
    key = find_version(template).key
    return Goal({key: template[key]})


def stored_goal(context: EngineContext, stack: Stack, reference: JsonMap) -> Goal:
    """Return a goal of the stack of which the contents' ids are stored."""
    lookup = StoredLookup(context.sealer_of(stack).open)
    return Goal(
        template=_content(context, reference["template"]),
        environment=evaluate(_content(context, reference["environment"]), lookup),
        files=_content(context, reference["files"]),
        parameters=evaluate(reference["parameters"], lookup),
        secret=_secret(reference["parameters"]),
    )


def merged_goal(context: EngineContext, stack: Stack, request: UpdateRequest) -> Goal:
    """Return the request's goal, with its missing parts taken from the stack's present goal.

    :raises TemplateError: an environment file of the request is wrong.
    """
    goal = request.goal
    had = stored_goal(context, stack, current_goal(stack))
    cleared = set(request.clear_parameters)
    document = dict(had.environment)
    document["parameters"] = _without(document.get("parameters") or {}, cleared)
    in_environment = requested_parameters(context, goal)
    named = {*goal.parameters, *in_environment}
    return Goal(
        template=goal.template or had.template,
        environment=goal.environment,
        environment_files=(EXISTING, *goal.environment_files),
        files={**had.files, **goal.files, EXISTING: json.dumps(document)},
        parameters={**_without(had.parameters, cleared | in_environment), **goal.parameters},
        secret=had.secret,
        retained=frozenset({*had.parameters, *document["parameters"]} - named),
        may_use=goal.may_use,
        cloud=goal.cloud,
    )


def _current_parameters(context: EngineContext, stack: Stack) -> dict[str, Parameter]:
    """Return the parameters that the stack has now; none if its goal is wrong by the rules of this release.

    They are resolved again because the stored strings do not show hidden values.
    """
    goal = stored_goal(context, stack, current_goal(stack))
    template = typing.cast(JsonMap, goal.template)
    try:
        return resolve_parameters(
            section_of(template, "parameters"),
            GivenValues(
                parse_environment(goal.environment),
                goal.parameters,
                from_resource=stack.parent_id is not None,
            ),
            version=find_version(template),
            seal=context.sealer_of(stack).seal,
        )
    except TemplateError:
        return {}


def _content(context: EngineContext, key: ContentId) -> Json:
    return context.database.read(lambda conn: content.get(conn, key))


def _secret(parameters: JsonMap) -> frozenset[str]:
    """Return the names of parameters that are stored as hidden; they stay so under any template."""
    return frozenset(name for name, value in parameters.items() if holds_secret(value))


def _without(values: JsonMap, names: set[str]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if name not in names}
