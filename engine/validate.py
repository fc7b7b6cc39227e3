"""Checking a goal without creating a stack: validation of a template, and the preview of a creation."""

import typing
from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import stacks
from ..db.errors import NameTaken
from ..planning.goal import check_available, read_environment
from ..planning.requests import CreateRequest, Goal, Preview, PreviewedResource
from ..resources.errors import UnknownType
from ..template.budget import Budget
from ..template.compile import Identity, describe
from ..template.environment import Environment, as_document, map_type
from ..template.errors import TemplateError
from ..template.load import load_template
from .context import Compiled, EngineContext
from .stack_limit import check_room

Json = typing.Any


class Validation:
    """Checks goals; stores nothing.  Thread-safe."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def preview(self, request: CreateRequest) -> Preview:
        """Return what a creation would make.

        :raises TemplateError: the goal is wrong.
        :raises NameTaken: a living stack has the name.
        :raises LimitExceeded: the project has as many stacks as it may have.
        """
        most = self._context.settings.max_stacks if request.is_limited else 0

        def check(conn: Connection) -> None:
            if stacks.is_taken(conn, request.project_id, request.name):
                raise NameTaken(request.name)
            check_room(conn, request.project_id, most)

        self._context.database.read(check)
        compiled = self._compile(request)
        required_by: dict[str, list[str]] = {name: [] for name in compiled.plan.resources}
        for name, definition in compiled.plan.resources.items():
            for required in definition.requires:
                required_by[required].append(name)
        return Preview(
            name=request.name,
            description=compiled.plan.description,
            parameters=compiled.parameter_view,
            timeout_mins=request.timeout_mins,
            disable_rollback=request.disable_rollback,
            tags=request.tags,
            resources=[
                PreviewedResource(
                    name=name,
                    type=definition.declared_type,
                    action="INIT",
                    properties=definition.properties,
                    metadata=definition.metadata,
                    description=definition.description,
                    required_by=sorted(required_by[name]),
                )
                for name, definition in compiled.plan.resources.items()
            ],
        )

    def validate(self, project_id: str, goal: Goal) -> dict[str, Json]:
        """Return the body of POST /validate: the template's parameters; values need not be given.

        Where some are missing, only that can be judged which does not depend on them.

        :raises TemplateError: the template or the environment is wrong.
        """
        limits = self._context.settings.limits
        template = load_template(goal.template, max_bytes=limits.template_bytes)
        described = describe(template)
        environment = read_environment(goal, template, Budget(limits.budget))
        if (operator := self._context.registry.operator) is not None:
            environment = operator.under(environment, goal.files)
        given = {**environment.parameters, **goal.parameters}
        known = {**environment.defaults, **given}
        if all("Default" in schema or name in known for name, schema in described["Parameters"].items()):
            goal = replace(goal, template=template)
            self._compile(CreateRequest(project_id=project_id, name="validated", goal=goal))
        else:
            self._check_type_names(template, environment, goal, Budget(limits.budget))
        return _answer(described, environment, given)

    def _check_type_names(
        self, template: Mapping[str, Json], environment: Environment, goal: Goal, budget: Budget
    ) -> None:
        resources_of = template.get("resources")
        registry = self._context.registry.usable
        for name, body in resources_of.items() if isinstance(resources_of, Mapping) else ():
            declared = body.get("type") if isinstance(body, Mapping) else None
            if not isinstance(declared, str):
                raise TemplateError("must be a map with a type", ("resources", str(name)))
            type_name = map_type(environment, (str(name),), declared, budget).name
            if goal.cloud is not None:
                check_available([type_name], registry, goal.cloud.has_service)
            try:
                registry.get(type_name)
            except UnknownType as error:
                raise TemplateError(str(error), ("resources", str(name), "type")) from error

    def _compile(self, request: CreateRequest) -> Compiled:
        identity = Identity(request.name, "", request.project_id)
        sealer = self._context.sealer.of_stack(request.project_id, "")
        return self._context.compiler.compile(request.goal, identity, sealer)


def _answer(
    described: Mapping[str, Json], environment: Environment, given: Mapping[str, Json]
) -> dict[str, Json]:
    """Return Heat's answer to POST /validate.

    As in Heat, it shows hidden values in clear, because the caller has just sent them.  Clients such as
    Horizon fill a form with them, from which they create the stack.

    :param described: what the template says of its parameters.
    :param given: values of the environment and of the request.
    """
    shown = dict(described)
    if not shown.get("ParameterGroups"):
        shown.pop("ParameterGroups", None)
    defaults = environment.defaults
    shown["Parameters"] = {
        name: {
            **schema,
            **({"Default": defaults[name]} if name in defaults else {}),
            **({"Value": given[name]} if name in given else {}),
        }
        for name, schema in described["Parameters"].items()
    }
    document = {**as_document(environment), "parameters": dict(given)}
    document.pop("encrypted_param_names")
    return {**shown, "Environment": document}
