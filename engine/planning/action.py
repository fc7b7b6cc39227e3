"""Plans of actions on a stack's resources, and of the tasks that signals begin; pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...db.ids import ResourceId, SnapshotId, TaskId, TraversalNumber
from ...db.rows import FailureCause, Resource, Stack, Task, Traversal
from ...db.states import REDELIVER_AFTER, Status, TaskKind, TaskState, TraversalState
from ...resources.contract.signals import Adjustment, Scaling
from ...shapes import JsonMap
from .plan import (
    Edges,
    Plan,
    PlannedTask,
    TaskDefinition,
    TraversalScope,
    make_plan,
    needs_of,
    task_key,
)

UNORDERED = frozenset({TaskKind.CHECK})
REVERSED = frozenset({TaskKind.SUSPEND})
"""Kinds that begin with dependent resources: a suspension stops a server before its network."""


def plan_action(
    existing: Sequence[Resource], running: Mapping[ResourceId, Task], kind: TaskKind, scope: TraversalScope
) -> Plan:
    """Plan one task for each resource that exists, or may exist when the step that creates it has ended.

    The other resources stay as they are, for an update to replace; a check fails because of them.

    :param running: tasks of older traversals that still run, by resource.
    """
    current = [row for row in existing if row.replaced_by is None]
    rows = [row for row in current if row.is_there]
    task_of = {row.id: scope.ids.new(TaskId) for row in rows}
    edges = Edges()
    if kind not in UNORDERED:
        for row_id, required in needs_of(rows).items():
            for required_id in required:
                pair = (task_of[required_id], task_of[row_id])
                edges.add(*(reversed(pair) if kind in REVERSED else pair))
    jobs = [
        PlannedTask(
            task_of[row.id], kind, row.id, row.plugin, settings=scope.breakpoints.settings_of(row.name)
        )
        for row in rows
    ]
    plan = make_plan(jobs, edges, running, scope, resources=[])
    if kind != TaskKind.CHECK or all(row.is_there for row in current):
        return plan
    return _failed(plan, current, running, scope.now)


def _failed(plan: Plan, current: Sequence[Resource], running: Collection[ResourceId], now: float) -> Plan:
    """Return the plan of a check that fails however its tasks end: resources were never created.

    As in Heat, these resources are marked: nothing happens to them, so where nothing had begun the check
    counts as cancelled.  Those that had not begun because another one is missing stay as they are.
    """
    missing = [row for row in current if not row.is_there]
    waiting = _dependents(current, {row.id for row in missing})
    first = min(row.name for row in missing if row.id not in waiting)
    cause = FailureCause("the resource does not exist", path=f"resources.{first}")
    failed = replace(plan.traversal, failure=cause.reason("CHECK"), failure_cause=cause)
    mark = {"action": "CHECK", "status": Status.FAILED, "updated_at": now}
    changes = {}
    for row in missing:
        if row.id in running:
            continue
        if row.is_untouched and row.physical_id is None and not row.data:
            if row.id in waiting:
                continue
            reason = f"Can not check {row.name}, resource not created yet."
            changes[row.id] = {**mark, "cancelled": True, "reason": reason}
        elif row.action == "CREATE":
            reason = f"Can not check {row.name}, its creation failed: {row.reason}"
            changes[row.id] = {**mark, "reason": reason}
    return replace(plan, traversal=failed, changes=changes)


def _dependents(rows: Sequence[Resource], required: Collection[ResourceId]) -> set[ResourceId]:
    """Return the resources that need one of the required ones, directly or through others."""
    dependents: dict[ResourceId, list[ResourceId]] = {}
    for row_id, needs in needs_of(rows).items():
        for need in needs:
            dependents.setdefault(need, []).append(row_id)
    waiting: set[ResourceId] = set()
    pending = [*required]
    while pending:
        following = [row_id for row_id in dependents.get(pending.pop(), ()) if row_id not in waiting]
        waiting.update(following)
        pending.extend(following)
    return waiting


def plan_snapshot(
    existing: Sequence[Resource],
    running: Mapping[ResourceId, Task],
    snapshot_id: SnapshotId,
    scope: TraversalScope,
) -> Plan:
    """Plan a snapshot: a task for each resource, and a row for the copy that the snapshot keeps of it.

    The rows of the copies exist from the beginning, because a copy's key finds the remote copy that a lost
    step has made.

    :param running: tasks of older traversals that still run, by resource.
    """
    plan = plan_action(existing, running, TaskKind.SNAPSHOT, scope)
    row_of = {row.id: row for row in existing}
    tasks = []
    copies = []
    for task in plan.tasks:
        spare = scope.ids.new(ResourceId)
        tasks.append(replace(task, spare_id=spare))
        copies.append(_copy(row_of[task.resource_id], spare, task, snapshot_id))
    return replace(plan, tasks=tasks, resources=copies)


def plan_snapshot_deletion(
    copies: Sequence[Resource], running: Mapping[ResourceId, Task], scope: TraversalScope
) -> Plan:
    """Plan the deletion of all that a snapshot keeps; the copies do not depend on each other.

    :param running: tasks that still run, by the copy that they work on.
    """
    jobs = [
        PlannedTask(scope.ids.new(TaskId), TaskKind.DELETE_SNAPSHOT, copy.id, copy.plugin) for copy in copies
    ]
    return make_plan(jobs, Edges(), running, scope, resources=[])


def _copy(row: Resource, copy_id: ResourceId, task: Task, snapshot_id: SnapshotId) -> Resource:
    return replace(
        row,
        id=copy_id,
        snapshot_id=snapshot_id,
        action="SNAPSHOT",
        status=Status.IN_PROGRESS,
        reason="",
        reference_id=None,
        attributes=None,
        definition=None,
        requires=[],
        replaces=None,
        replaced_by=None,
        cancelled=False,
        reinstated=False,
        progress=None,
        key=task_key(task.id),
    )


def plan_scaling(
    stack: Stack,
    group_id: ResourceId,
    change: tuple[Adjustment, Scaling],
    scope: TraversalScope,
    *,
    timeout: float,
    keep: float,
) -> tuple[Task, Traversal]:
    """Return a task that scales a group, and its traversal as it brings the purge of the task.

    The task belongs to the stack's last traversal, which has ended and whose row may be purged already.

    :param change: the request, and its result.
    :param timeout: seconds that the task may take.
    :param keep: seconds until the purge.
    """
    adjustment, scaling = change
    # The step reads the result; the requested adjustment is only for the notification.
    requested = {"group": adjustment.group, "kind": adjustment.kind, "by": adjustment.by}
    properties = {"size": scaling.size, "cooldown": scaling.cooldown}
    definition = TaskDefinition(properties=properties, metadata=requested)
    started = replace(scope, traversal=stack.traversal)
    return _signalled(TaskKind.SCALE, group_id, definition, started, timeout=timeout, keep=keep)


def plan_signal(
    resource_id: ResourceId, request: JsonMap, scope: TraversalScope, *, timeout: float, keep: float
) -> tuple[Task, Traversal]:
    """Return a task that carries out the request of a signal, and its traversal as it brings the purge.

    The traversal is the task's own, so no action of the stack supersedes it.

    :param timeout: seconds that the task may take.
    :param keep: seconds until the purge.
    """
    definition = TaskDefinition(properties=request)
    return _signalled(TaskKind.SIGNAL, resource_id, definition, scope, timeout=timeout, keep=keep)


def _signalled(
    kind: TaskKind,
    resource_id: ResourceId,
    definition: TaskDefinition,
    scope: TraversalScope,
    *,
    timeout: float,
    keep: float,
) -> tuple[Task, Traversal]:
    """Return a task that no traversal counts, and a finished traversal that brings its purge."""
    task = Task(
        id=scope.ids.new(TaskId),
        traversal=scope.traversal,
        stack_id=scope.stack_id,
        resource_id=resource_id,
        kind=kind,
        state=TaskState.READY,
        pending=0,
        shard=scope.shard,
        ready_at=scope.now,
        due_at=scope.now + REDELIVER_AFTER,
        timeout=timeout,
        retries_left=scope.defaults.retries,
        request=scope.request,
        definition=definition.to_json(),
    )
    ended = Traversal(
        id=scope.ids.new(TraversalNumber),
        traversal=scope.traversal,
        stack_id=scope.stack_id,
        shard=scope.shard,
        open_tasks=0,
        state=TraversalState.DONE,
        due_at=scope.now + keep,
    )
    return task, ended
