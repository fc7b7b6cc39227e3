"""Starting an action that every resource of a stack takes part in: check, suspend, resume."""

from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.states import TaskKind
from ..planning.action import plan_action
from ..planning.plan import TraversalScope
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
    plan = plan_action(resources.of_stack(conn, stack.id), running, kind, scope)
    return store_plan(conn, acting, plan, running.values(), now=scope.now)
