"""Creating stacks and deleting them, and actions on all of their resources."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import content, stacks
from ..db.ids import ResourceId, StackId
from ..db.rows import Stack
from ..db.states import Status, TaskKind
from ..db.work import endings
from ..resources.contract.cloud import Trustor
from .actions import start_action, start_delete
from .context import Compiled, EngineContext, Started, announce_started
from .planning.adopt import plan_adoption
from .planning.plan import PlannedBreakpoints, TraversalScope, plan_create
from .planning.requests import CREATED, AdoptedResource, CreateRequest
from .quotas import QuotaName
from .requested import compile_requested
from .start import store_plan
from .tree_limit import charge

NEEDED = (QuotaName.STACKS, QuotaName.RESOURCES, QuotaName.GOAL_BYTES)
"""Quotas that a new stack needs."""


@dataclass(frozen=True)
class NewStack:
    """A stack to be created, without its compiled goal.

    :ivar deadline: function from the present moment to the moment at which the creation has timed out; both
        in seconds since the epoch.
    :ivar adopted: existing resources to take over, by name; None: all resources are created.
    :ivar breakpoints_hold: whether breakpoints stop the creation.
    :ivar is_limited: whether the quotas of the project apply, and for a nested stack the limit of its tree.
    :ivar parent: the stack that it is nested in, and `parent_resource_id` the resource that it belongs to.
    """

    id: StackId
    name: str
    project_id: str
    username: str | None
    deadline: Callable[[float], float]
    timeout_mins: int | None = None
    disable_rollback: bool = True
    abort_on_breakpoint: bool = False
    breakpoints_hold: bool = True
    tags: tuple[str, ...] = ()
    adopted: Mapping[str, AdoptedResource] | None = None
    is_limited: bool = False
    parent: Stack | None = None
    parent_resource_id: ResourceId | None = None


def create_stack(
    context: EngineContext,
    new: NewStack,
    compiled: Compiled,
    guard: Callable[[Connection], None] = lambda conn: None,
) -> Stack:
    """Store a stack with its plan, and announce its first tasks.

    :param guard: called first in the transaction; an error of it keeps the stack from being stored.
    :raises NameTaken: a living stack of the project has the name.
    :raises LimitExceeded: the project has as much as it may have.
    """
    # As in Heat, an adoption stops at no breakpoint.
    active = new.breakpoints_hold and new.adopted is None
    quotas = context.settings.quotas
    breakpoints = PlannedBreakpoints(abort=new.abort_on_breakpoint, active=active)

    def start(conn: Connection, scope: TraversalScope) -> Started:
        # Before the first statement: nothing is locked meanwhile.
        plan = plan_create(compiled.plan, replace(scope, breakpoints=breakpoints))
        if new.adopted is not None:
            plan = plan_adoption(plan, new.adopted, compiled.sealer.seal, context.registry)
        guard(conn)
        stack = _row(conn, new, compiled, scope)
        if quotas is not None and new.parent is None:
            stack = replace(stack, goal_size=compiled.size)
        stacks.insert(conn, stack)
        if stack.has_sinks:
            stacks.set_event_sinks(conn, stack, compiled.event_sinks, scope.now)
        endings.record_stack_events(conn, [stack], Status.IN_PROGRESS, stack.reason, by=None, now=scope.now)
        started = store_plan(conn, stack, plan, [], now=scope.now)
        if new.parent is not None:
            charge(conn, context.settings, stack, is_limited=new.is_limited)
        elif quotas is not None and new.is_limited:
            quotas.check(conn, stack.project_id, *NEEDED)
        return started

    started = context.start_traversal(new.id, start)
    announce_started(context.hints, started)
    return started.stack


def _row(conn: Connection, new: NewStack, compiled: Compiled, scope: TraversalScope) -> Stack:
    """Return the stack's row; its contents are stored before it."""
    action = "CREATE" if new.adopted is None else "ADOPT"
    bodies = [compiled.template, compiled.environment, dict(compiled.files)]
    template_id, environment_id, files_id = content.put_many(conn, bodies, scope.now)
    return Stack(
        id=new.id,
        project_id=new.project_id,
        name=new.name,
        live_name=new.name if new.parent is None else None,
        root_id=new.id if new.parent is None else new.parent.root_id,
        parent_id=None if new.parent is None else new.parent.id,
        parent_resource_id=new.parent_resource_id,
        depth=0 if new.parent is None else new.parent.depth + 1,
        owner=new.username,
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        traversal=scope.traversal,
        shard=scope.shard,
        deadline_at=new.deadline(scope.now),
        timeout_mins=new.timeout_mins,
        template_id=template_id,
        environment_id=environment_id,
        files_id=files_id,
        parameters=compiled.parameters,
        tree_resources=compiled.resources,
        own_resources=len(compiled.plan.resources),
        parameter_view=compiled.parameter_view,
        outputs=compiled.outputs,
        description=compiled.plan.description,
        disable_rollback=new.disable_rollback,
        abort_on_breakpoint=new.abort_on_breakpoint,
        has_sinks=bool(compiled.event_sinks) if new.parent is None else new.parent.has_sinks,
        created_at=scope.now,
        tags=new.tags,
    )


class StackOperations:
    """Carries out users' requests for whole stacks.  Thread-safe."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def create(self, request: CreateRequest) -> Stack:
        """Create or adopt a stack; it is committed when this returns, and runs once a conductor is there.

        :raises TemplateError: the goal is wrong.
        :raises NameTaken: a living stack has the name.
        :raises LimitExceeded: the project has as much as it may have.
        :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
        """
        context = self._context
        stack_id = StackId(str(uuid.uuid4()))
        quotas = context.settings.quotas
        if quotas is not None and request.is_limited:
            # Before it costs more: a user who may have no more stacks would get this answer anyway.
            context.database.read(lambda conn: quotas.check_room(conn, request.project_id, QuotaName.STACKS))
        # What an adopted stack has was made by others, and may have more than its template says.
        purpose = CREATED if request.adopted is None else request.goal.purpose
        compiled = compile_requested(
            context,
            replace(request.goal, purpose=purpose),
            name=request.name,
            stack_id=stack_id,
            project_id=request.project_id,
            root_id=stack_id,
        )
        timeout = context.timeout(request.timeout_mins)
        new = NewStack(
            id=stack_id,
            name=request.name,
            project_id=request.project_id,
            username=request.owner,
            deadline=lambda now: now + timeout,
            timeout_mins=request.timeout_mins,
            disable_rollback=request.disable_rollback,
            abort_on_breakpoint=request.abort_on_breakpoint,
            tags=tuple(request.tags),
            adopted=request.adopted,
            is_limited=request.is_limited,
        )
        if request.trustor is None:
            return create_stack(context, new, compiled)
        with context.delegations.begin(stack_id, request.trustor) as delegation:
            return create_stack(
                context, new, compiled, lambda conn: context.delegations.confirm(conn, delegation)
            )

    def delete(self, stack: Stack, trustor: Trustor | None = None) -> None:
        """Delete a stack at any moment; a stack that is deleted, or is being deleted, stays as it is.

        :param trustor: the user, who gives the stack a credential if it has none.
        :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
        """
        self._context.delegations.provide(stack.root_id, stack.project_id, trustor)
        timeout = self._context.timeout(stack.timeout_mins)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_delete(conn, scope, timeout=timeout)

        started = self._context.start_traversal(stack.id, start)
        if started is not None:
            announce_started(self._context.hints, started)

    def act(self, stack: Stack, kind: TaskKind, trustor: Trustor | None = None) -> None:
        """Check, suspend or resume a stack; nothing happens to one that is suspended or resumed already.

        :param trustor: the user, who gives the stack a credential if it has none.
        :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
        :raises NotUpdatable: the stack's state does not allow the action; see actions.start_action.
        """
        self._context.delegations.provide(stack.root_id, stack.project_id, trustor)
        timeout = self._context.timeout(stack.timeout_mins)

        def start(conn: Connection, scope: TraversalScope) -> Started | None:
            return start_action(conn, kind, scope, deadline_at=scope.now + timeout)

        started = self._context.start_traversal(stack.id, start)
        if started is not None:
            announce_started(self._context.hints, started)
