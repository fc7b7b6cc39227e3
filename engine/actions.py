"""Starting an action that every resource of a stack takes part in: check, suspend, resume."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import events, resources, stacks
from ..db.rows import Event, Resource, Stack
from ..db.states import TaskKind
from ..planning.action import plan_action
from ..planning.plan import Plan, TraversalScope
from .context import Started
from .stack_state import check_action, is_in_effect, kept_goal
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
        Event(
            stack_id=stack.id,
            resource_name=row.name,
            resource_type=row.type,
            physical_id=row.physical_id,
            action=plan.changes[row.id]["action"],
            status=plan.changes[row.id]["status"],
            reason=plan.changes[row.id]["reason"],
            at=now,
            has_sinks=stack.has_sinks,
        )
        for row in rows
        if row.id in plan.changes
    ]
