"""Snapshots of stacks: taking one, and deleting one."""

import uuid
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import resources, snapshots, stacks
from ..db.ids import SnapshotId
from ..db.rows import Snapshot, Stack
from ..db.states import Status, TaskKind
from ..template.errors import LimitExceeded
from .context import EngineContext, Started, announce_started
from .errors import ActionInProgress, NotUpdatable
from .planning.action import plan_snapshot, plan_snapshot_deletion
from .planning.plan import TraversalScope
from .quotas import QuotaName
from .stack_state import check_action, current_goal, kept_goal
from .start import begin, running_of, store_plan


def take_snapshot(context: EngineContext, stack: Stack, name: str | None) -> Snapshot:
    """Begin a snapshot; the stack's present goal is in it when this returns.

    :raises ActionInProgress: another action is in progress.
    :raises NotUpdatable: the stack is suspended, or was to be deleted.
    :raises LimitExceeded: the stack or its project has as many snapshots as it may have.
    """
    timeout = context.timeout(stack.timeout_mins)
    settings = context.settings

    def start(conn: Connection, scope: TraversalScope) -> tuple[Started, Snapshot]:
        started, snapshot = start_snapshot(
            conn, SnapshotRequest(name, scope.now + timeout, settings.max_snapshots), scope
        )
        if settings.quotas is not None:
            settings.quotas.check(conn, stack.project_id, QuotaName.SNAPSHOTS, QuotaName.GOAL_BYTES)
        return started, snapshot

    started, snapshot = context.start_traversal(stack.id, start)
    announce_started(context.hints, started)
    return snapshot


def delete_snapshot(context: EngineContext, stack: Stack, snapshot_id: SnapshotId) -> None:
    """Delete a snapshot, also during an action of the stack; one that is being deleted stays as it is.

    :raises NotFound: the stack has no such snapshot.
    :raises NotUpdatable: the snapshot is being taken.
    """
    stack_timeout = context.settings.stack_timeout
    started = context.start_traversal(
        stack.id,
        lambda conn, scope: start_snapshot_deletion(conn, snapshot_id, scope, timeout=stack_timeout),
    )
    if started is not None:
        announce_started(context.hints, started)


@dataclass(frozen=True)
class SnapshotRequest:
    """A snapshot to be taken.

    :ivar deadline_at: seconds since the epoch.
    :ivar most: snapshots the stack may have; 0: no limit.
    :ivar id: id of the snapshot; None: a new id.
    """

    name: str | None
    deadline_at: float
    most: int = 0
    id: SnapshotId | None = None


def start_snapshot(
    conn: Connection, request: SnapshotRequest, scope: TraversalScope
) -> tuple[Started, Snapshot]:
    """Begin a snapshot.

    :raises ActionInProgress, NotUpdatable, LimitExceeded: the reasons of take_snapshot.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if stack.status == Status.IN_PROGRESS:
        raise ActionInProgress(stack.name, stack.action)
    check_action(stack, TaskKind.SNAPSHOT)
    if request.most and len(snapshots.of_stack(conn, stack.id)) >= request.most:
        raise LimitExceeded(
            f"You have reached the maximum snapshots per stack, {request.most}. Please delete some snapshots."
        )
    previous = kept_goal(stack)
    acting = begin(conn, stack, scope, action="SNAPSHOT", deadline_at=request.deadline_at, previous=previous)
    snapshot = Snapshot(
        id=request.id or SnapshotId(str(uuid.uuid4())),
        stack_id=stack.id,
        name=request.name,
        action="CREATE",
        status=Status.IN_PROGRESS,
        reason="",
        traversal=scope.traversal,
        goal=current_goal(stack),
        tags=list(stack.tags),
        created_at=scope.now,
        goal_size=stack.goal_size,
    )
    snapshots.insert(conn, stack, snapshot)
    running = running_of(conn, stack)
    plan = plan_snapshot(resources.of_stack(conn, stack.id), running, snapshot.id, scope)
    started = store_plan(conn, acting, plan, running.values(), now=scope.now)
    return started, snapshots.get(conn, stack.id, snapshot.id)


def start_snapshot_deletion(
    conn: Connection, snapshot_id: SnapshotId, scope: TraversalScope, *, timeout: float
) -> Started | None:
    """Begin to delete a snapshot, by a traversal of its own; None if it is being deleted.

    :param timeout: seconds each deletion may take where nothing else sets a limit: the stack's deadline would
        not end a deletion that hangs.
    :raises NotFound, NotUpdatable: the reasons of delete_snapshot.
    """
    scope = replace(scope, last_timeout=timeout)
    stack = stacks.lock(conn, scope.stack_id)
    snapshot = snapshots.get(conn, stack.id, snapshot_id)
    if snapshot.status == Status.IN_PROGRESS:
        if snapshot.action == "DELETE":
            return None
        raise NotUpdatable("Deleting in-progress snapshot is not supported: wait until it is complete")
    begun = snapshots.begin_deletion(conn, snapshot, scope.traversal, "Snapshot delete started")
    assert begun, "the stack's row is locked"
    copies = resources.copies(conn, stack.id, snapshot_id)
    copy_ids = {copy.id for copy in copies}
    running_tasks = running_of(conn, stack, on_copies=True)
    running = {row_id: task for row_id, task in running_tasks.items() if row_id in copy_ids}
    plan = plan_snapshot_deletion(copies, running, scope)
    stack_of_deletion = replace(stack, traversal=scope.traversal)
    return store_plan(
        conn, stack_of_deletion, plan, running.values(), now=scope.now, action="DELETE_SNAPSHOT"
    )
