"""Creating stacks and deleting them, and actions on all of their resources."""

import uuid
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import content, stacks
from ..db.ids import StackId
from ..db.rows import Stack
from ..db.states import Status, TaskKind
from ..db.work import endings
from ..resources.contract.cloud import Trustor
from .actions import start_action, start_delete
from .context import Compiled, EngineContext, Review, Started, announce_started
from .planning.adopt import plan_adoption
from .planning.plan import PlannedBreakpoints, TraversalScope, plan_create
from .planning.requests import CREATED, REVIEWED, CreateRequest, Purpose
from .quotas import QuotaName
from .requested import compile_requested
from .start import store_plan
from .tree_limit import charge

NEEDED = (QuotaName.STACKS, QuotaName.RESOURCES, QuotaName.GOAL_BYTES)
"""Quotas that a new stack needs."""


def store_stack(
    context: EngineContext,
    request: CreateRequest,
    compiled: Compiled,
    guard: Callable[[Connection], None] = lambda conn: None,
) -> Stack:
    """Store a stack with its plan, and announce its first tasks.

    :param compiled: its goal, compiled for the id that the stack gets.
    :param guard: called first in the transaction; an error of it keeps the stack from being stored.
    :raises NameTaken: a living stack of the project has the name.
    :raises LimitExceeded: the project has as much as it may have.
    """
    nesting = request.nesting
    parent = None if nesting is None else nesting.parent
    # As in Heat, an adoption stops at no breakpoint.
    active = request.adopted is None and (nesting is None or nesting.breakpoints_hold)
    quotas = context.settings.quotas
    breakpoints = PlannedBreakpoints(abort=request.abort_on_breakpoint, active=active)

    def start(conn: Connection, scope: TraversalScope) -> Started:
        # Before the first statement: nothing is locked meanwhile.
        plan = plan_create(compiled.plan, replace(scope, breakpoints=breakpoints))
        if request.adopted is not None:
            plan = plan_adoption(plan, request.adopted, compiled.sealer.seal, context.registry)
        guard(conn)
        stack = _row(conn, request, compiled, scope, _deadline(context, request, scope.now))
        if quotas is not None and parent is None:
            stack = replace(stack, goal_size=compiled.size)
        if stack.has_sinks:
            stacks.set_event_sinks(conn, stack, compiled.event_sinks, scope.now)
        event = endings.stack_event(stack, Status.IN_PROGRESS, stack.reason, by=None, now=scope.now)
        started = store_plan(conn, stack, plan, [], now=scope.now, creation=event)
        if parent is not None:
            charge(conn, context.settings, stack, is_limited=request.is_limited)
        elif quotas is not None and request.is_limited:
            quotas.check(conn, stack.project_id, *NEEDED)
        return started

    started = context.start_traversal(StackId(compiled.identity.stack_id), start)
    announce_started(context.hints, started)
    return started.stack


def _row(
    conn: Connection, request: CreateRequest, compiled: Compiled, scope: TraversalScope, deadline_at: float
) -> Stack:
    """Return the stack's row; its contents are stored before it."""
    nesting = request.nesting
    parent = None if nesting is None else nesting.parent
    action = "CREATE" if request.adopted is None else "ADOPT"
    bodies = [compiled.template, compiled.environment, dict(compiled.files)]
    template_id, environment_id, files_id = content.put_many(conn, bodies, scope.now)
    return Stack(
        id=scope.stack_id,
        project_id=request.project_id,
        name=request.name,
        live_name=request.name if parent is None else None,
        root_id=scope.stack_id if parent is None else parent.root_id,
        parent_id=None if parent is None else parent.id,
        parent_resource_id=None if nesting is None else nesting.resource_id,
        depth=0 if parent is None else parent.depth + 1,
        owner=request.owner,
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started{compiled.note}",
        traversal=scope.traversal,
        shard=scope.shard,
        deadline_at=deadline_at,
        timeout_mins=request.timeout_mins,
        template_id=template_id,
        environment_id=environment_id,
        files_id=files_id,
        parameters=compiled.parameters,
        tree_resources=compiled.resources,
        own_resources=len(compiled.plan.resources),
        parameter_view=compiled.parameter_view,
        outputs=compiled.outputs,
        description=compiled.plan.description,
        disable_rollback=request.disable_rollback,
        abort_on_breakpoint=request.abort_on_breakpoint,
        has_sinks=bool(compiled.event_sinks) if parent is None else parent.has_sinks,
        created_at=scope.now,
        tags=tuple(request.tags),
    )


def _deadline(context: EngineContext, request: CreateRequest, now: float) -> float:
    if request.nesting is not None:
        return request.nesting.deadline(now)
    return now + context.timeout(request.timeout_mins)


def create_stack(context: EngineContext, request: CreateRequest, review: Review | None = None) -> Stack:
    """Create or adopt a stack; it is committed when this returns, and runs once a conductor is there.

    :param review: looks at the compiled goal of a creation first; None: nobody does.
    :raises TemplateError: the goal is wrong.
    :raises NameTaken: a living stack has the name.
    :raises LimitExceeded: the project has as much as it may have.
    :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
    """
    stack_id = StackId(str(uuid.uuid4()))
    quotas = context.settings.quotas
    if quotas is not None and request.is_limited:
        # Before it costs more: a user who may have no more stacks would get this answer anyway.
        context.database.read(lambda conn: quotas.check_room(conn, request.project_id, QuotaName.STACKS))
    purpose: Purpose = CREATED if review is None else REVIEWED
    if request.adopted is not None:
        # What an adopted stack has was made by others: it may have more than its template says, and nothing
        # of it has to fit the cloud once more.
        purpose = request.goal.purpose
        review = None
    compiled = compile_requested(
        context,
        replace(request.goal, purpose=purpose),
        name=request.name,
        stack_id=stack_id,
        project_id=request.project_id,
        root_id=stack_id,
    )
    if review is not None:
        compiled = replace(compiled, note=review(compiled), nested={})
    if request.trustor is None:
        return store_stack(context, request, compiled)
    with context.delegations.begin(stack_id, request.trustor) as delegation:
        return store_stack(
            context, request, compiled, lambda conn: context.delegations.confirm(conn, delegation)
        )


def delete_stack(context: EngineContext, stack: Stack, trustor: Trustor | None = None) -> None:
    """Delete a stack at any moment; a stack that is deleted, or is being deleted, stays as it is.

    :param trustor: the user, who gives the stack a credential if it has none.
    :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
    """
    context.delegations.provide(stack.root_id, stack.project_id, trustor)
    timeout = context.timeout(stack.timeout_mins)

    def start(conn: Connection, scope: TraversalScope) -> Started | None:
        return start_delete(conn, scope, timeout=timeout)

    started = context.start_traversal(stack.id, start)
    if started is not None:
        announce_started(context.hints, started)


def act_on_stack(
    context: EngineContext, stack: Stack, kind: TaskKind, trustor: Trustor | None = None
) -> None:
    """Check, suspend or resume a stack; nothing happens to one that is suspended or resumed already.

    :param trustor: the user, who gives the stack a credential if it has none.
    :raises DelegationRefused, KeystoneUnavailable: the stack needs a credential and cannot get one.
    :raises NotUpdatable: the stack's state does not allow the action; see actions.start_action.
    """
    context.delegations.provide(stack.root_id, stack.project_id, trustor)
    timeout = context.timeout(stack.timeout_mins)

    def start(conn: Connection, scope: TraversalScope) -> Started | None:
        return start_action(conn, kind, scope, deadline_at=scope.now + timeout)

    started = context.start_traversal(stack.id, start)
    if started is not None:
        announce_started(context.hints, started)
