"""Creating a stack, of its own or nested in another: its row and its whole plan in one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import content, stacks
from ..db.ids import ResourceId, StackId
from ..db.rows import Stack
from ..db.states import Status
from ..db.work import endings
from ..planning.adopt import plan_adoption
from ..planning.breakpoints import PlannedBreakpoints
from ..planning.plan import TraversalScope, ids_needed, plan_create
from ..planning.requests import AdoptedResource
from .announce import Started, announce_started
from .context import Compiled, EngineContext
from .start import store_plan


@dataclass(frozen=True)
class NewStack:
    """A stack to be created, but for what its compiled goal says.

    :ivar deadline: from the present moment to the moment at which the creation has timed out; both in
        seconds since the epoch.
    :ivar adopted: existing resources to take over, by name; None: all resources are created.
    :ivar breakpoints_hold: False: no breakpoint stops the creation.
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
    parent: Stack | None = None
    parent_resource_id: ResourceId | None = None


def create_stack(
    context: EngineContext, new: NewStack, compiled: Compiled, guard: Callable[[Connection], None]
) -> Stack:
    """Store a stack with its plan, and announce its first tasks.

    :param guard: called first in the transaction; an error of it keeps the stack from being stored.
    :raises NameTaken: see stacks.insert.
    """
    scope = context.scope(new.id, ids_needed(len(compiled.plan.resources)))
    # As in Heat, an adoption stops at no breakpoint.
    active = new.breakpoints_hold and new.adopted is None
    breakpoints = PlannedBreakpoints(abort=new.abort_on_breakpoint, active=active)
    plan = plan_create(compiled.plan, replace(scope, breakpoints=breakpoints))
    if new.adopted is not None:
        plan = plan_adoption(plan, new.adopted, compiled.sealer.seal, context.registry)

    def store(conn: Connection) -> Started:
        guard(conn)
        stack = _row(conn, new, compiled, scope)
        stacks.insert(conn, stack)
        endings.record_stack_events(conn, [stack], Status.IN_PROGRESS, stack.reason, by=None, now=scope.now)
        return store_plan(conn, stack, plan, [], now=scope.now)

    started = context.database.write(store)
    announce_started(context.hints, started)
    return started.stack


def _row(conn: Connection, new: NewStack, compiled: Compiled, scope: TraversalScope) -> Stack:
    """Return the stack's row; its contents are stored before it."""
    action = "CREATE" if new.adopted is None else "ADOPT"
    return Stack(
        id=new.id,
        tenant=new.project_id,
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
        template_id=content.put(conn, compiled.template, scope.now),
        environment_id=content.put(conn, compiled.environment, scope.now),
        files_id=content.put(conn, dict(compiled.files), scope.now),
        parameters=compiled.parameters,
        parameter_view=compiled.parameter_view,
        outputs=compiled.outputs,
        description=compiled.plan.description,
        disable_rollback=new.disable_rollback,
        abort_on_breakpoint=new.abort_on_breakpoint,
        created_at=scope.now,
        tags=new.tags,
    )
