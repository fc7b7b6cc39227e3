"""What the API can ask for: each order is one committed transaction, then hints."""

import functools
import typing
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import conductors, resources, stacks
from ..db.conductors import ConductorRecord
from ..db.errors import NameTaken
from ..db.ids import ContentId, StackId
from ..db.rows import Stack
from ..db.states import Status, TaskKind
from ..planning.adopt import adopting
from ..planning.breakpoints import PlannedBreakpoints
from ..planning.plan import TooFewIds, TraversalScope, ids_needed, plan_create
from ..planning.requests import CreateRequest, Goal, Preview, PreviewedResource, validated
from ..resources.errors import UnknownType
from ..template.budget import Budget
from ..template.compile import Identity, describe
from ..template.environment import Environment, map_type
from ..template.errors import TemplateError
from ..template.load import load_template
from .actions import start_action
from .compile import Compiled, check_types, read_environment
from .context import EngineContext
from .start import Started, announce_started, start_delete, store_new_stack

Json = typing.Any
UNSTORED = ContentId("")


class StackOperations:
    """Carries out what users ask.  Thread-safe."""

    def __init__(self, desk: EngineContext) -> None:
        self._desk = desk

    def create(self, request: CreateRequest) -> Stack:
        """Create or adopt a stack; it is committed when this returns, and runs once a conductor is there.

        :raises TemplateError: the goal is wrong.
        :raises NameTaken: a living stack has the name.
        :raises DelegationRefused, KeystoneAway: the stack needs a credential and cannot get one.
        """
        stack_id = StackId(str(uuid.uuid4()))
        compiled = self._compile(request, stack_id)
        scope = self._desk.scope(stack_id, ids_needed(len(compiled.plan.resources)))
        # As in Heat: an adoption stops at none.
        breakpoints = PlannedBreakpoints(abort=request.abort_on_breakpoint, active=request.adopted is None)
        plan = plan_create(compiled.plan, replace(scope, breakpoints=breakpoints))
        if request.adopted is not None:
            plan = adopting(plan, request.adopted, compiled.sealer.seal, self._desk.catalogue)
        stack = self._new_stack(request, compiled, scope)
        delegations = self._desk.delegations
        with delegations.begin(stack_id, request.delegator) as delegation:

            def store(conn: Connection) -> Started:
                delegations.confirm(conn, delegation)
                return store_new_stack(conn, stack, compiled, plan)

            begun = self._desk.database.write(store)
        announce_started(self._desk.hints, begun)
        return begun.stack

    def preview(self, request: CreateRequest) -> Preview:
        """What a creation would make; nothing is stored.

        :raises TemplateError: the goal is wrong.
        :raises NameTaken: a living stack has the name.
        """
        if self._desk.database.read(lambda conn: _lives(conn, request)):
            raise NameTaken(request.name)
        compiled = self._compile(request, StackId(""))
        required_by: dict[str, list[str]] = {name: [] for name in compiled.plan.resources}
        for name, definition in compiled.plan.resources.items():
            for required in definition.requires:
                required_by[required].append(name)
        return Preview(
            name=request.name,
            description=compiled.plan.description,
            parameters=compiled.parameter_view(Identity(request.name, "", request.tenant)),
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

    def validate(self, tenant: str, goal: Goal) -> dict[str, Json]:
        """The body of POST /validate: the template's parameters; values need not be given.

        Where some are missing, only that can be judged which does not depend on them.

        :raises TemplateError: the template or the environment is wrong.
        """
        limits = self._desk.settings.limits
        template = load_template(goal.template, max_bytes=limits.template_bytes)
        described = describe(template)
        environment = read_environment(goal, template, Budget(limits.budget))
        given = {**environment.parameters, **goal.parameters}
        known = {**environment.parameter_defaults, **given}
        if all("Default" in schema or name in known for name, schema in described["Parameters"].items()):
            request = CreateRequest(tenant=tenant, name="validated", goal=replace(goal, template=template))
            check_types(self._compile(request, StackId("")).plan, self._desk.catalogue)
        else:
            self._check_type_names(template, environment, Budget(limits.budget))
        return validated(described, environment, given)

    def _check_type_names(
        self, template: Mapping[str, Json], environment: Environment, budget: Budget
    ) -> None:
        resources_of = template.get("resources")
        for name, body in resources_of.items() if isinstance(resources_of, Mapping) else ():
            declared = body.get("type") if isinstance(body, Mapping) else None
            if not isinstance(declared, str):
                raise TemplateError("must be a map with a type", ("resources", str(name)))
            try:
                self._desk.catalogue.get(map_type(environment, (str(name),), declared, budget))
            except UnknownType as error:
                raise TemplateError(str(error), ("resources", str(name), "type")) from error

    def delete(self, stack: Stack) -> None:
        """Delete a stack at whatever moment; a stack that is deleted, or is being deleted, stays as it is."""
        timeout = self._desk.timeout(stack.timeout_mins)
        while True:
            count = self._desk.database.read(lambda conn: _rows(conn, stack))
            scope = self._desk.scope(stack.id, ids_needed(count))
            try:
                begun = self._desk.database.write(
                    functools.partial(start_delete, scope=scope, timeout=timeout)
                )
            except TooFewIds:
                continue
            if begun is not None:
                announce_started(self._desk.hints, begun)
            return

    def act(self, stack: Stack, kind: TaskKind) -> None:
        """Check, suspend or resume a stack.

        :raises NotUpdatable: see actions.start_action.
        """
        while True:
            found = self._desk.database.read(lambda conn: resources.of_stack(conn, stack.id))
            scope = self._desk.scope(stack.id, ids_needed(len(found)))
            deadline = scope.now + self._desk.timeout(stack.timeout_mins)
            begin = functools.partial(start_action, kind=kind, scope=scope, deadline_at=deadline)
            try:
                announce_started(self._desk.hints, self._desk.database.write(begin))
            except TooFewIds:
                continue
            return

    def services(self) -> Sequence[ConductorRecord]:
        """The conductors as they last reported."""
        return self._desk.database.read(conductors.list_all)

    # -- inside ------------------------------------------------------------------------------------

    def _compile(self, request: CreateRequest, stack_id: StackId) -> Compiled:
        sealer = self._desk.sealer.of_stack(request.tenant, stack_id)
        return self._desk.compile(request.goal, Identity(request.name, stack_id, request.tenant), sealer)

    def _new_stack(self, request: CreateRequest, compiled: Compiled, scope: TraversalScope) -> Stack:
        return Stack(
            id=scope.stack_id,
            tenant=request.tenant,
            name=request.name,
            live_name=request.name,
            root_id=scope.stack_id,
            owner=request.owner,
            action=request.action,
            status=Status.IN_PROGRESS,
            reason=f"Stack {request.action} started",
            traversal=scope.traversal,
            shard=scope.shard,
            deadline_at=scope.now + self._desk.timeout(request.timeout_mins),
            timeout_mins=request.timeout_mins,
            template_id=UNSTORED,
            environment_id=UNSTORED,
            files_id=UNSTORED,
            parameters=compiled.parameters,
            parameter_view=compiled.parameter_view(Identity(request.name, scope.stack_id, request.tenant)),
            outputs=compiled.outputs,
            description=compiled.plan.description,
            disable_rollback=request.disable_rollback,
            abort_on_breakpoint=request.abort_on_breakpoint,
            created_at=scope.now,
            tags=tuple(request.tags),
        )


def _rows(conn: Connection, stack: Stack) -> int:
    return len(resources.of_stack(conn, stack.id)) + len(resources.copies(conn, stack.id))


def _lives(conn: Connection, request: CreateRequest) -> bool:
    return stacks.is_taken(conn, request.tenant, request.name)
