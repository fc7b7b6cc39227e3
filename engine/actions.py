"""Starting an action that every resource of a stack takes part in: check, suspend, resume, delete."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import events, resources, snapshots, stacks
from ..db.rows import Event, Resource, Stack
from ..db.states import TaskKind
from ..db.work import cancel
from .cancel import cancel_nested
from .context import Started
from .planning.action import plan_action
from .planning.plan import Plan, TraversalScope, plan_delete
from .stack_state import check_action, is_in_effect, kept_goal, may_delete
from .start import begin, breakpoints_of, running_of, store_plan


def start_action(
    conn: Connection, kind: TaskKind, scope: TraversalScope, *, deadline_at: float
) -> Started | None:
    """Begin the action; None: its effect is there already.

    :param deadline_at: seconds since the epoch.
    :raises NotUpdatable: another action is in progress, or the stack is not in a state for this one.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if is_in_effect(stack, kind):
        return None
    check_action(stack, kind)
    acting = begin(
        conn, stack, scope, action=kind.upper(), deadline_at=deadline_at, previous=kept_goal(stack)
    )
    running = running_of(conn, stack)
    scope = replace(scope, breakpoints=breakpoints_of(conn, stack))
    rows = resources.of_stack(conn, stack.id)
    plan = plan_action(rows, running, kind, scope)
    events.add_many(conn, _marks(acting, rows, plan, scope.now))
    return store_plan(conn, acting, plan, running.values(), now=scope.now)


def _marks(stack: Stack, rows: Sequence[Resource], plan: Plan, now: float) -> list[Event]:
    """Return the events of resources whose state the plan itself changes."""
    return [
        Event.at_resource(
            row, (mark["action"], mark["status"]), mark["reason"], now, has_sinks=stack.has_sinks
        )
        for row in rows
        if (mark := plan.changes.get(row.id)) is not None
    ]


def start_delete(
    conn: Connection, scope: TraversalScope, *, timeout: float, breakpoints_hold: bool = True
) -> Started | None:
    """Supersede the stack's action with its deletion; None if it is deleted, or is being deleted.

    The caller asks work that runs on a resource to stop; the resource's deletion waits for its end.

    :param timeout: seconds the deletion may take.
    :param breakpoints_hold: whether breakpoints stop the deletion.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if not may_delete(stack):
        return None
    deleting = begin(conn, stack, scope, action="DELETE", deadline_at=scope.now + timeout)
    for traversal in (stack.traversal, *snapshots.take_over(conn, stack.id, scope.traversal)):
        cancel.cancel_unstarted(conn, stack.id, traversal, now=scope.now)
    # The nested stacks are deleted when their resources are; nothing more is done for them until then.
    inside = cancel_nested(conn, [stack.id], now=scope.now, grace=scope.defaults.cancel_grace)
    running = running_of(conn, stack, on_copies=True)
    rows = resources.of_stack(conn, stack.id)
    copies = resources.copies(conn, stack.id)
    again = stack.action == "DELETE"
    breakpoints = replace(breakpoints_of(conn, stack), may_abort=not again, active=breakpoints_hold)
    plan = plan_delete(rows, running, replace(scope, breakpoints=breakpoints), copies)
    started = store_plan(conn, deleting, plan, running.values(), now=scope.now)
    return replace(started, superseded=[*started.superseded, *inside])
