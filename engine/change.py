"""Starting an update, at any moment: the new goal and its plan in one transaction."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy.engine import Connection

from ..db import content, resources, stacks
from ..db.rows import Resource, Stack
from ..db.work import cancel, tasks
from ..db.work.cancel import CarryOver
from .context import Compiled, EngineContext, Started, announce_started
from .errors import NotUpdatable
from .planning.plan import PlannedBreakpoints, TraversalScope, tasks_by_resource
from .planning.update import (
    StillToBeAdopted,
    TypeFacts,
    UpdatePlanner,
)
from .stack_state import check_updatable, kept_goal
from .start import begin, running_of, store_plan
from .tree_limit import charge


@dataclass(frozen=True)
class Change:
    """An update of a stack, with its goal compiled.

    :ivar stack: the stack as it was when the goal was compiled.
    :ivar deadline: function from the present moment to the moment at which the update has timed out; both in
        seconds since the epoch.
    :ivar action: UPDATE, ROLLBACK or RESTORE.
    :ivar converge: whether each resource is first compared with the real object.
    :ivar columns: columns of the stack to set with the goal: timeout_mins, disable_rollback …
    :ivar tags: the new tags; None: the tags stay.
    :ivar breakpoints_hold: whether breakpoints stop the update.
    :ivar is_limited: whether the quotas of the project apply, and for a nested stack the limit of its tree.
    """

    stack: Stack
    compiled: Compiled
    deadline: Callable[[float], float]
    action: str = "UPDATE"
    converge: bool = False
    columns: Mapping[str, object] = field(default_factory=dict)
    tags: Sequence[str] | None = None
    breakpoints_hold: bool = True
    is_limited: bool = False


def commit_update(
    context: EngineContext, change: Change, guard: Callable[[Connection], None] = lambda conn: None
) -> bool:
    """Start an update and announce its first tasks.

    :param guard: called first in the transaction; an error of it keeps the update from being stored.
    :returns: False: another request has changed the stack meanwhile.  Compile again then: the old goal that
        this one was merged with is not the current one any more.
    :raises NotUpdatable: the stack's state allows no update; see start_update.
    :raises LimitExceeded: the project, or the tree of a nested stack, has as much as it may have.
    """
    types = TypeFacts(context.registry)
    quotas = context.settings.quotas

    def start(conn: Connection, scope: TraversalScope) -> Started | None:
        guard(conn)
        started = start_update(conn, change, scope, types)
        if started is None:
            return None
        if change.stack.parent_id is not None:
            # A tree that is above its limit, because somebody lowered that, may still change without growing.
            has_grown = started.stack.own_resources > change.stack.own_resources
            # Only a stored update shows how much it needs; where that is too much, the error undoes the
            # transaction.
            charge(conn, context.settings, started.stack, is_limited=change.is_limited and has_grown)
        elif quotas is not None and change.is_limited:
            quotas.check_growth(conn, change.stack, started.stack)
        return started

    started = context.start_traversal(change.stack.id, start)
    if started is not None:
        # Only after the commit: a conductor that looked before would find no task.
        announce_started(context.hints, started)
    return started is not None


def start_update(conn: Connection, change: Change, scope: TraversalScope, types: TypeFacts) -> Started | None:
    """Supersede the stack's action with an update to a new goal; None if another request changed the stack.

    :raises NotUpdatable: the stack is deleted, or is being deleted, or is suspended.
    """
    stack = stacks.lock(conn, change.stack.id)
    # Updates of one stack meet at its row's lock: who comes second was compiled, and merged, with an old
    # goal.
    if stack.traversal != change.stack.traversal:
        return None
    check_updatable(stack, change.action)
    scope = replace(scope, breakpoints=_breakpoints(stack, change))
    goal = _goal(conn, stack, change, scope.now)
    # A rollback to nothing has no environment of its own: whoever watches the stack sees its end.
    has_environment = change.action != "ROLLBACK" or bool(stack.previous)
    if has_environment and (change.compiled.event_sinks or stack.has_sinks):
        stacks.set_event_sinks(conn, stack, change.compiled.event_sinks, scope.now)
        goal["has_sinks"] = bool(change.compiled.event_sinks)
    updating = begin(
        conn,
        stack,
        scope,
        action=change.action,
        deadline_at=change.deadline(scope.now),
        **{**goal, **change.columns},
    )
    if change.tags is not None:
        stacks.set_tags(conn, stack, change.tags)
    planner = functools.partial(
        UpdatePlanner,
        compiled=change.compiled.plan,
        scope=scope,
        types=types,
        rolling_back=change.action == "ROLLBACK",
        observing=change.converge,
    )
    # Tasks of the superseded traversal that create a resource by its new definition are carried over.  So
    # two plans are made: one that finds them, and one that knows which of them have been taken.
    begun = tasks_by_resource(tasks.begun_of_traversal(conn, stack.traversal))
    carry_over = CarryOver(scope.traversal)
    if begun:
        environment_changed = any(goal[key] != getattr(stack, key) for key in ("files_id", "environment_id"))
        begun_plan = planner(_rows(conn, stack, change), running=begun)
        carry_over = replace(
            carry_over, tasks=begun_plan.to_carry_over(environment_changed=environment_changed)
        )
    # From here on no old task can start, so the tasks that run are known, and only then can be planned for.
    carried = cancel.cancel_unstarted(conn, stack.id, stack.traversal, now=scope.now, carry_over=carry_over)
    running = running_of(conn, stack)
    # Some tasks that the first plan chose may have ended since: the second one sees what they have made.
    continued = {row: task for row, task in begun.items() if task.id in carried}
    try:
        plan = planner(_rows(conn, stack, change), running={**continued, **running}).plan()
    except StillToBeAdopted as error:
        raise NotUpdatable(str(error)) from error
    return store_plan(conn, updating, plan, running.values(), now=scope.now)


def _rows(conn: Connection, stack: Stack, change: Change) -> list[Resource]:
    """Return the rows that the update starts from.

    :param stack: the stack as it was before.
    """
    existing = resources.of_stack(conn, stack.id)
    if change.action == "ROLLBACK" and not stack.previous:
        # A rollback to nothing deletes what the stack has made, and leaves alone what it has adopted.  Where
        # the adoption has not begun, the resource is untouched, so no task deletes it.
        return [_retained(row) if row.action == "ADOPT" else row for row in existing]
    return existing


def _retained(row: Resource) -> Resource:
    """Return the resource so that its deletion keeps the physical one, which Stoker has not created.

    A deletion reads nothing else of the definition.
    """
    return replace(row, definition={"deletion_policy": "Retain"})


def _breakpoints(stack: Stack, change: Change) -> PlannedBreakpoints:
    return PlannedBreakpoints(
        registry=change.compiled.environment["resource_registry"],
        abort=bool(change.columns.get("abort_on_breakpoint", stack.abort_on_breakpoint)),
        # A rollback stops nowhere: it cleans up after a failure, and nobody has to be there to continue it.
        active=change.breakpoints_hold and change.action != "ROLLBACK",
    )


def _goal(conn: Connection, stack: Stack, change: Change, now: float) -> dict[str, object]:
    """Return the columns of the new goal, and of the last complete one."""
    compiled = change.compiled
    previous = stack.previous if change.action == "ROLLBACK" else kept_goal(stack)
    return {
        "template_id": content.put(conn, compiled.template, now),
        "environment_id": content.put(conn, compiled.environment, now),
        "files_id": content.put(conn, dict(compiled.files), now),
        "previous": previous,
        "parameters": compiled.parameters,
        "tree_resources": compiled.resources,
        "own_resources": len(compiled.plan.resources),
        "goal_size": compiled.size if stack.parent_id is None else 0,
        "parameter_view": compiled.parameter_view,
        "outputs": compiled.outputs,
        "description": compiled.plan.description,
    }
