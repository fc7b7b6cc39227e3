"""Actions that bring every resource of a stack from one state to another: check, suspend, resume."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import endings, events, resources, stacks, tasks
from ..db.ids import ResourceId
from ..db.resources import Resource
from ..db.states import Status, TaskKind, TaskState
from ..db.tasks import REDELIVER_AFTER, Task
from .change import NotUpdatable
from .edges import Edges, without_cycles
from .planning import Plan, Scope, finish_task, task_ids
from .start import Begun, store_plan, traversals

UNORDERED = frozenset({TaskKind.CHECK})
REVERSED = frozenset({TaskKind.SUSPEND})
"""A suspension stops what depends on others first; a resumption the other way round."""


def plan_action(existing: Sequence[Resource], kind: TaskKind, scope: Scope) -> Plan:
    """One task for each resource that was made; one whose creation failed stays for an update to replace."""
    rows = [row for row in existing if row.replaced_by is None and not _unmade(row)]
    ids, finish_id = task_ids(scope, len(rows))
    task_of = {row.id: task_id for row, task_id in zip(rows, ids, strict=True)}
    edges = Edges()
    if kind not in UNORDERED:
        needs = without_cycles({row.id: [ResourceId(i) for i in row.requires] for row in rows})
        for row_id, required in needs.items():
            for other in required:
                pair = (task_of[other], task_of[row_id])
                edges.add(*(reversed(pair) if kind in REVERSED else pair))
    made = []
    for row in rows:
        pending = edges.count_before(task_of[row.id])
        made.append(
            Task(
                id=task_of[row.id],
                traversal=scope.traversal,
                stack_id=scope.stack_id,
                resource_id=row.id,
                kind=kind,
                state=TaskState.WAITING if pending else TaskState.READY,
                pending=pending,
                shard=scope.shard,
                due_at=None if pending else scope.now + REDELIVER_AFTER,
                timeout=scope.defaults.timeout,
                retries_left=scope.defaults.retries,
                finish_id=finish_id,
                successors=edges.after(task_of[row.id]),
            )
        )
    return Plan(resources=[], tasks=made, finish=finish_task(scope, finish_id, len(made)))


def _unmade(row: Resource) -> bool:
    return row.action == "INIT" or (row.action, row.status) == ("CREATE", Status.FAILED)


ALLOWED: Mapping[TaskKind, str] = {
    TaskKind.SUSPEND: "a stack is suspended when it has been created, updated, resumed or checked",
    TaskKind.RESUME: "only a suspended stack is resumed",
    TaskKind.CHECK: "a stack is checked when nothing else is going on",
}


def start_action(conn: Connection, kind: TaskKind, scope: Scope, *, deadline_at: float) -> Begun:
    """Begin the action.

    :raises NotUpdatable: something else is going on, or the stack is not in a state for it.
    :raises TooFewIds: the stack has more resources than ids were reserved for.
    """
    stack, action = stacks.lock(conn, scope.stack_id), kind.upper()
    suspended = stack.action == "SUSPEND" or (stack.action == "RESUME" and stack.status == Status.FAILED)
    wrong = stack.status == Status.IN_PROGRESS or stack.action == "DELETE"
    if wrong or (kind == TaskKind.RESUME) != suspended:
        raise NotUpdatable(
            f"{action} of stack {stack.name} in the state {stack.action}_{stack.status} is not supported: "
            f"{ALLOWED[kind]}"
        )
    reason = f"Stack {action} started"
    begun = stacks.begin(
        conn,
        stack.id,
        seen=stack.traversal,
        traversal=scope.traversal,
        action=action,
        reason=reason,
        deadline_at=deadline_at,
    )
    assert begun, "the row is locked"
    acting = replace(stack, action=action, traversal=scope.traversal, reason=reason)
    running = tasks.running_of_stack(conn, stack.id)
    plan = plan_action(resources.of_stack(conn, stack.id), kind, scope)
    started = endings.stack_event(acting, Status.IN_PROGRESS, reason, by=None, now=scope.now)
    events.add_many(conn, [started])
    woken = store_plan(conn, acting, plan, now=scope.now)
    return Begun(acting, [*plan.ready, *woken], traversals(running))
