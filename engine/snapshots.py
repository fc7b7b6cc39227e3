"""Snapshots of stacks: taking one, and deleting one."""

import functools
import typing
import uuid
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import resources, snapshots, stacks
from ..db.ids import ResourceId, SnapshotId, StackId
from ..db.rows import Resource, Snapshot, Stack, Task
from ..db.states import Status, TaskKind
from ..planning.graph import Edges
from ..planning.plan import Plan, PlannedTask, TooFewIds, TraversalScope, ids_needed, make_plan, task_ids
from ..planning.task_definition import task_key
from ..template.errors import LimitExceeded
from .actions import check_action, plan_action
from .change import current_goal, kept_goal
from .context import EngineContext
from .errors import ActionInProgress, NotUpdatable
from .start import Started, announce_started, begin, running_of, store_plan

Json = typing.Any


class Snapshots:
    """Carries out what users ask of snapshots.  Thread-safe."""

    def __init__(self, desk: EngineContext) -> None:
        self._desk = desk

    def take(self, stack: Stack, name: str | None) -> Snapshot:
        """Begin a snapshot; the stack's goal of now is in it when this returns.

        :raises ActionInProgress: something else is going on.
        :raises NotUpdatable: the stack is suspended, or was to be deleted.
        :raises LimitExceeded: it has as many snapshots as it may have.
        """
        while True:
            found = self._desk.database.read(lambda conn: resources.of_stack(conn, stack.id))
            scope = self._desk.scope(stack.id, ids_needed(len(found)))
            deadline = scope.now + self._desk.timeout(stack.timeout_mins)
            most = self._desk.settings.max_snapshots
            wanted = SnapshotRequest(name, deadline, most)
            start = functools.partial(start_snapshot, wanted=wanted, scope=scope)
            try:
                begun, made = self._desk.database.write(start)
            except TooFewIds:
                continue
            announce_started(self._desk.hints, begun)
            return made

    def delete(self, stack: Stack, snapshot_id: SnapshotId) -> None:
        """Delete a snapshot, whatever the stack does meanwhile; one that is being deleted stays as it is.

        :raises NotFound: the stack has no such snapshot.
        :raises NotUpdatable: it is being taken.
        """
        scope = deletion_scope(self._desk, stack.id, snapshot_id)
        begun = self._desk.database.write(lambda conn: start_deletion(conn, snapshot_id, scope))
        if begun is not None:
            announce_started(self._desk.hints, begun)


@dataclass(frozen=True)
class SnapshotRequest:
    """A snapshot to be taken.

    :ivar deadline_at: seconds since the epoch.
    :ivar most: snapshots the stack may have; 0: no limit.
    :ivar id: of the snapshot; None: a new one.
    """

    name: str | None
    deadline_at: float
    most: int = 0
    id: SnapshotId | None = None


def start_snapshot(
    conn: Connection, wanted: SnapshotRequest, scope: TraversalScope
) -> tuple[Started, Snapshot]:
    """Begin a snapshot.

    :raises ActionInProgress, NotUpdatable, LimitExceeded: see Snapshots.take.
    :raises TooFewIds: the stack has more resources than ids were reserved for.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if stack.status == Status.IN_PROGRESS:
        raise ActionInProgress(stack.name, stack.action)
    check_action(stack, TaskKind.SNAPSHOT)
    if wanted.most and len(snapshots.of_stack(conn, stack.id)) >= wanted.most:
        raise LimitExceeded(
            f"You have reached the maximum snapshots per stack, {wanted.most}. Please delete some snapshots."
        )
    previous = kept_goal(stack)
    acting = begin(conn, stack, scope, action="SNAPSHOT", deadline_at=wanted.deadline_at, previous=previous)
    made = Snapshot(
        id=wanted.id or SnapshotId(str(uuid.uuid4())),
        stack_id=stack.id,
        name=wanted.name,
        action="CREATE",
        status=Status.IN_PROGRESS,
        reason="",
        traversal=scope.traversal,
        goal=current_goal(stack),
        tags=list(stack.tags),
        created_at=scope.now,
    )
    snapshots.insert(conn, made)
    running = running_of(conn, stack)
    rows = resources.of_stack(conn, stack.id)
    plan = _with_copies(plan_action(rows, running, TaskKind.SNAPSHOT, scope), rows, made.id, scope)
    begun = store_plan(conn, acting, plan, running.values(), now=scope.now)
    return begun, snapshots.get(conn, stack.id, made.id)


def _with_copies(plan: Plan, rows: list[Resource], snapshot_id: SnapshotId, scope: TraversalScope) -> Plan:
    """The copies are there from the beginning: what a lost step has made is found by its copy's key."""
    row_of = {row.id: row for row in rows}
    tasks, copies = [], []
    for index, task in enumerate(plan.tasks):
        # The ids before those of the tasks are meant for new rows.
        spare = ResourceId(scope.first_id + index)
        tasks.append(replace(task, spare_id=spare))
        copies.append(_copy(row_of[ResourceId(task.resource_id or 0)], spare, task, snapshot_id))
    return replace(plan, tasks=tasks, resources=copies)


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
        progress=None,
        key=task_key(task.id),
    )


def deletion_scope(desk: EngineContext, stack_id: StackId, snapshot_id: SnapshotId) -> TraversalScope:
    """For start_deletion."""
    copies = desk.database.read(lambda conn: resources.copies(conn, stack_id, snapshot_id))
    scope = desk.scope(stack_id, ids_needed(len(copies)))
    if scope.defaults.timeout is not None:
        return scope
    # Nothing else would end a deletion that hangs.
    return replace(scope, defaults=replace(scope.defaults, timeout=desk.settings.stack_timeout))


def start_deletion(conn: Connection, snapshot_id: SnapshotId, scope: TraversalScope) -> Started | None:
    """Begin to delete a snapshot, by a traversal beside the stack's own; None if it is being deleted.

    :raises NotFound, NotUpdatable: see Snapshots.delete.
    """
    stack = stacks.lock(conn, scope.stack_id)
    seen = snapshots.get(conn, stack.id, snapshot_id)
    if seen.status == Status.IN_PROGRESS:
        if seen.action == "DELETE":
            return None
        raise NotUpdatable("Deleting in-progress snapshot is not supported: wait until it is complete")
    begun = snapshots.begin_deletion(conn, seen, scope.traversal, "Snapshot delete started")
    assert begun, "the stack's row is locked"
    copies = resources.copies(conn, stack.id, snapshot_id)
    mine = {copy.id for copy in copies}
    running = {
        row_id: task for row_id, task in running_of(conn, stack, on_copies=True).items() if row_id in mine
    }
    ids, finish_id = task_ids(scope, len(copies))
    jobs = [
        PlannedTask(task_id, TaskKind.DELETE_SNAPSHOT, copy.id)
        for copy, task_id in zip(copies, ids, strict=True)
    ]
    plan = make_plan(jobs, Edges(), running, finish_id, scope, resources=[])
    beside = replace(stack, traversal=scope.traversal)
    return store_plan(conn, beside, plan, running.values(), now=scope.now)
