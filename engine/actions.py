"""Actions that bring every resource of a stack from one state to another: check, suspend, resume."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import resources, stacks
from ..db.ids import ResourceId
from ..db.rows import Resource, Stack, Task
from ..db.states import Status, TaskKind
from ..planning.graph import Edges
from ..planning.plan import Plan, PlannedTask, TraversalScope, make_plan, needs_of, task_ids
from .change import kept_goal
from .errors import NotUpdatable
from .start import Started, begin, breakpoints_of, running_of, store_plan

UNORDERED = frozenset({TaskKind.CHECK})
REVERSED = frozenset({TaskKind.SUSPEND})
"""A suspension stops what depends on others first; a resumption the other way round."""


def plan_action(
    existing: Sequence[Resource], running: Mapping[ResourceId, Task], kind: TaskKind, scope: TraversalScope
) -> Plan:
    """One task for each resource that is there, or may be when the step that makes it has ended; the others
    stay for an update to replace.

    :param running: see make_plan.
    """
    rows = [row for row in existing if row.replaced_by is None and row.is_there]
    ids, finish_id = task_ids(scope, len(rows))
    task_of, edges = {row.id: task_id for row, task_id in zip(rows, ids, strict=True)}, Edges()
    if kind not in UNORDERED:
        for row_id, required in needs_of(rows).items():
            for other in required:
                pair = (task_of[other], task_of[row_id])
                edges.add(*(reversed(pair) if kind in REVERSED else pair))
    jobs = [
        PlannedTask(task_of[row.id], kind, row.id, settings=scope.breakpoints.settings_of(row.name))
        for row in rows
    ]
    return make_plan(jobs, edges, running, finish_id, scope, resources=[])


ALLOWED: Mapping[TaskKind, str] = {
    TaskKind.SUSPEND: "a stack is suspended when it has been created, updated, resumed or checked",
    TaskKind.RESUME: "only a suspended stack is resumed",
    TaskKind.CHECK: "a stack is checked when nothing else is going on",
    TaskKind.SNAPSHOT: "a snapshot is taken when nothing else is going on",
}


def start_action(conn: Connection, kind: TaskKind, scope: TraversalScope, *, deadline_at: float) -> Started:
    """Begin the action.

    :raises NotUpdatable: something else is going on, or the stack is not in a state for it.
    :raises TooFewIds: the stack has more resources than ids were reserved for.
    """
    stack = stacks.lock(conn, scope.stack_id)
    check_action(stack, kind)
    acting = begin(
        conn, stack, scope, action=kind.upper(), deadline_at=deadline_at, previous=kept_goal(stack)
    )
    running = running_of(conn, stack)
    scope = replace(scope, breakpoints=breakpoints_of(conn, stack))
    plan = plan_action(resources.of_stack(conn, stack.id), running, kind, scope)
    return store_plan(conn, acting, plan, running.values(), now=scope.now)


def check_action(stack: Stack, kind: TaskKind) -> None:
    """:raises NotUpdatable: see start_action."""
    action = kind.upper()
    suspended = stack.action == "SUSPEND" or (stack.action == "RESUME" and stack.status == Status.FAILED)
    wrong = stack.status == Status.IN_PROGRESS or stack.action == "DELETE"
    if wrong or (kind == TaskKind.RESUME) != suspended:
        raise NotUpdatable(
            f"{action} of stack {stack.name} in the state {stack.action}_{stack.status} is not supported: "
            f"{ALLOWED[kind]}"
        )
