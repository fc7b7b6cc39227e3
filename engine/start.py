"""Starting a traversal: the inputs of its plan from the stored stack, and its rows in one transaction."""

import typing
from collections.abc import Collection
from dataclasses import replace

from sqlalchemy.engine import Connection

from ..db import content, creations, resources, snapshots, traversals
from ..db.ids import ResourceId, TaskId
from ..db.rows import Event, Stack, Task
from ..db.states import Status, TaskKind, TaskState
from ..db.work import breakpoints, cancel, countdown, endings, stack_transitions, tasks
from .context import Started
from .planning.plan import Plan, PlannedBreakpoints, TraversalScope, tasks_by_resource


def breakpoints_of(conn: Connection, stack: Stack) -> PlannedBreakpoints:
    """Return the breakpoints of a stack whose goal stays as it is."""
    environment = content.get(conn, stack.environment_id)
    return PlannedBreakpoints(environment.get("resource_registry") or {}, abort=stack.abort_on_breakpoint)


def store_plan(
    conn: Connection,
    stack: Stack,
    plan: Plan,
    running: Collection[Task],
    *,
    now: float,
    action: str | None = None,
    creation: Event | None = None,
) -> Started:
    """Store a plan's changes; a plan without tasks ends at once, and tasks with a breakpoint are held.

    :param running: tasks of older traversals that still run; their rows are locked.
    :param action: action of the traversal; None: the stack's action.
    :param creation: the first event of a stack that is not stored yet; None: the stack is stored.
    :raises NameTaken: a living stack of the project has the name of the new one.
    """
    # Carried-over tasks may wait instead of run: they change hands also where nothing runs.
    inherited = _supersede(conn, plan, running, now=now) if running or plan.spared else 0
    # Nothing was ever made for these rows, so no task deletes them.
    if plan.settled:
        resources.delete_many(conn, plan.settled)
    open_tasks = plan.traversal.open_tasks + inherited
    traversal = replace(plan.traversal, action=action or stack.action, open_tasks=open_tasks)
    rows = traversals.new_rows(traversal, plan.resources, tasks.new_rows(plan.tasks))
    if creation is None:
        traversals.insert_with(conn, rows)
    else:
        creations.insert(conn, stack, creation, rows)
    if plan.changes:
        resources.change_many(conn, plan.changes)
    ready = [task.id for task in plan.tasks if task.state == TaskState.READY]
    if plan.held and breakpoints.hold(conn, plan.held, by=None, now=now):
        ready = []  # A breakpoint has aborted the traversal.
    # No task will end such a traversal, or stop its deadline while all of its tasks are held.
    if plan.held or not plan.tasks:
        ended = endings.finish(conn, {plan.traversal.id: 0}, by=None, now=now)
        ready += [task_id for ids in ended.woken.values() for task_id in ids]
    return Started(stack, ready, sorted({task.traversal for task in running}), plan.spared)


def _supersede(conn: Connection, plan: Plan, running: Collection[Task], *, now: float) -> int:
    """Stop the tasks of older traversals, but for those that the plan carries over.

    :returns: how many of the latter do not run now: the new traversal counts them among its open tasks.
    """
    spared = set(plan.spared)
    # A carried-over task is not asked to stop: it makes what the new goal asks for, too.
    stopped = [task.id for task in running if task.id not in spared]
    cancel.ask_to_stop(conn, stopped, now=now, stop_by=plan.stop_by)
    tasks.supersede(conn, running, spared)
    waiting: dict[TaskId, list[TaskId]] = {}
    # The new task of a resource waits for its old one: two of them never act on one resource at once.
    for old, new in plan.after:
        waiting.setdefault(old.id, list(old.successors)).append(new)
    for old_id, successors in waiting.items():
        tasks.set_successors(conn, old_id, successors)
    spared_tasks = spared.difference(task.id for task in running)
    tasks.inherit(conn, spared_tasks, plan.traversal.id)
    return len(spared_tasks)


def begin(
    conn: Connection,
    stack: Stack,
    scope: TraversalScope,
    *,
    action: str,
    deadline_at: float,
    **columns: typing.Any,
) -> Stack:
    """Make the scope's traversal the current one of a stack whose row is locked, and record its event.

    :param columns: further columns of the stack to set.
    """
    # The snapshot's traversal is not the stack's any more, so its end will not end the snapshot.
    if (stack.action, stack.status) == ("SNAPSHOT", Status.IN_PROGRESS):
        reason = f"Stack SNAPSHOT was superseded by {action}"
        snapshots.end(conn, [stack.traversal], reason=reason, failed=True)
    if stack.remaining is not None:  # With those of the stacks around it.
        countdown.resume_deadline(conn, stack.id, stack.traversal, now=scope.now)
    columns = {"reason": f"Stack {action} started", **columns}
    columns["deadline_at"] = deadline_at
    begun = stack_transitions.begin(conn, stack, scope.traversal, action=action, **columns)
    assert begun, "the row is locked"
    recorded = action == "ROLLBACK" and (stack.action, stack.status) == (action, Status.IN_PROGRESS)
    stack = replace(stack, action=action, status=Status.IN_PROGRESS, traversal=scope.traversal, **columns)
    if not recorded:  # endings.begin_rollbacks records the event of a rollback.
        endings.record_stack_events(conn, [stack], Status.IN_PROGRESS, stack.reason, by=None, now=scope.now)
    return stack


def running_of(conn: Connection, stack: Stack, *, on_copies: bool = False) -> dict[ResourceId, Task]:
    """Return the tasks that still run, of any traversal, by their resource; their rows are locked.

    :param on_copies: whether tasks on the copies in snapshots are included: their deletions, which run during
        every action but the stack's own deletion, and the tasks that still make a copy, by the copy too.
    """
    running = [task for task in tasks.running_of_stack(conn, stack.id) if task.kind != TaskKind.SIGNAL]
    if not on_copies:
        return tasks_by_resource(task for task in running if task.kind != TaskKind.DELETE_SNAPSHOT)
    making = {task.spare_id: task for task in running if task.kind == TaskKind.SNAPSHOT and task.spare_id}
    return {**making, **tasks_by_resource(running)}
