"""Orphaned creates: objects that a detached step may still make.

Such an object must not be lost, and must not block the stack.  So the resource, with its idempotency key, is
copied into a stack of its own, which is nested in the first one and only deletes it.  The deletion is parked
until the thread has ended or its conductor is dead.  Then it is a task like any other.
"""

import typing
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import resources, stacks, traversals
from ..id_source import ids_of
from ..ids import MemberId, ResourceId, StackId, TaskId, TraversalId, TraversalNumber, WaitsOn
from ..rows import OrphanedCreate, ReadyTasks, Resource, Stack, Task, Traversal
from ..schema import tables
from ..states import FINAL, Status, TaskKind, TaskState
from . import tasks, transitions
from .tasks import Locked, by_traversal

RETRIES = 5
INSISTS = {"retries_permanent": True}
"""The definition of a deletion of which nobody sees that it has failed; see engine/planning/plan.py."""
NAME_LENGTH = 255


def record(conn: Connection, orphan: OrphanedCreate, *, now: float) -> TaskId:
    """Store an orphaned create, to be deleted once its step has ended; return the deletion's task."""
    stack = stacks.get(conn, orphan.task.stack_id)
    ids = ids_of(conn)
    task_id = ids.new(TaskId)
    number = ids.new(TraversalNumber)
    reason = f"Waits for the creation of {orphan.resource.name} that did not stop, to remove what it makes"
    keeper = keeper_of(stack, f"-{orphan.resource.name}-{orphan.task.id}", reason, now=now)
    stacks.insert(conn, keeper)
    row = _unfinished(orphan.resource, ids.new(ResourceId), keeper.id)
    resources.insert_many(conn, [row])
    shared: dict[str, typing.Any] = {
        "traversal": keeper.traversal,
        "stack_id": keeper.id,
        "shard": keeper.shard,
    }
    deletion = Task(
        id=task_id,
        kind=TaskKind.DELETE,
        state=TaskState.PARKED,
        pending=0,
        resource_id=row.id,
        member=orphan.task.member,
        waits_on=orphan.step,
        retries_left=RETRIES,
        finish_id=number,
        definition=INSISTS,
        request=orphan.task.request,
        **shared,
    )
    tasks.insert_many(conn, [deletion])
    traversals.insert(conn, Traversal(id=number, open_tasks=1, action="DELETE", **shared))
    return task_id


def keeper_of(stack: Stack, tail: str, reason: str, *, now: float) -> Stack:
    """Return a stack nested in another one, which only deletes things.

    :param tail: the end of its name.
    """
    return replace(
        stack,
        id=StackId(str(uuid.uuid4())),
        name=(stack.name[: NAME_LENGTH - len(tail)] + tail)[-NAME_LENGTH:],
        live_name=None,
        parent_id=stack.id,
        parent_resource_id=None,
        depth=stack.depth + 1,
        action="DELETE",
        status=Status.IN_PROGRESS,
        reason=reason,
        traversal=TraversalId(str(uuid.uuid4())),
        deadline_at=None,
        remaining=None,
        rollback_at=None,
        failure_cause=None,
        previous=None,
        own_resources=0,
        outputs={},
        created_at=now,
        updated_at=None,
        deleted_at=None,
        tags=(),
    )


def _unfinished(created: Resource, row_id: ResourceId, stack_id: StackId) -> Resource:
    """Return the row, in a stack of its own, of the object that a step may still create for a resource."""
    return replace(
        created,
        id=row_id,
        stack_id=stack_id,
        action="CREATE",
        status=Status.FAILED,
        reason="CREATE did not stop when it was asked to",
        cancelled=False,
        requires=(),
        replaces=None,
        replaced_by=None,
        reinstated=False,
        unhealthy=False,
        progress=None,
    )


def record_detached(conn: Connection, orphan: OrphanedCreate, *, now: float) -> None:
    """Record the create of a detached step, unless another attempt finds, or has found, its product.

    A create that is recorded already waits for its step under the conductor's present name from now on.
    """
    t = tables.task
    waiting = sa.and_(t.c.waits_on == str(orphan.step), t.c.state == TaskState.PARKED)
    renamed = conn.execute(sa.update(t).where(waiting).values(member=orphan.task.member))
    if renamed.rowcount:
        return
    state = conn.execute(sa.select(t.c.state).where(t.c.id == orphan.task.id)).scalar()
    row = resources.by_ids(conn, [orphan.resource.id]).get(orphan.resource.id)
    is_made = row is not None and row.physical_id is not None
    if state in FINAL - {TaskState.DONE} and not is_made:
        record(conn, orphan, now=now)


def resolve(conn: Connection, orphan: OrphanedCreate, physical_id: str | None, *, now: float) -> ReadyTasks:
    """Delete the product of a detached step, now that the step has ended; return the tasks made ready.

    :param physical_id: id of the product; None: the step has made nothing.
    """
    t = tables.task
    r = tables.resource
    row = conn.execute(
        sa.select(t.c.id, t.c.resource_id)
        .where(t.c.waits_on == str(orphan.step), t.c.state == TaskState.PARKED)
        .order_by(t.c.id)
        .with_for_update()
    ).first()
    if row is not None:
        task_id = TaskId(row.id)
        row_id = row.resource_id
    elif physical_id is not None and _is_nobodys(conn, orphan, physical_id):
        task_id = record(conn, orphan, now=now)
        row_id = conn.execute(sa.select(t.c.resource_id).where(t.c.id == task_id)).scalar_one()
    else:
        return ReadyTasks()
    if physical_id is not None:
        conn.execute(sa.update(r).where(r.c.id == row_id).values(physical_id=physical_id))
    return _wake(conn, tasks.lock_many(conn, [task_id], TaskState.PARKED), now=now)


def _is_nobodys(conn: Connection, orphan: OrphanedCreate, physical_id: str) -> bool:
    """Return whether the object that a step has made belongs to no resource, and none will find it.

    Its resource was deleted meanwhile, because its conductor counted as dead.  Or a later attempt has made
    another object, because the type does not find objects by their key.  Or no later attempt would find it.
    """
    t = tables.task
    task = conn.execute(sa.select(t.c.state, t.c.attempt).where(t.c.id == orphan.task.id)).first()
    if task == (TaskState.DONE, orphan.task.attempt):
        # Only a stored result completes a task under its own attempt: the step had ended before, and only the
        # answer of the database was lost.  The resource has the object, or another one has got it from there.
        return False
    row = resources.by_ids(conn, [orphan.resource.id]).get(orphan.resource.id)
    if row is None:
        return not _was_abandoned(conn, orphan, physical_id)
    if row.physical_id is not None:
        return row.physical_id != physical_id
    return task is None or task.state in FINAL


def _was_abandoned(conn: Connection, orphan: OrphanedCreate, physical_id: str) -> bool:
    """Return whether the resource's stack was abandoned, so that the user has the object now.

    The last event that names the object is not one of its deletion then.
    """
    e = tables.event
    action = conn.execute(
        sa.select(e.c.action)
        .where(
            e.c.stack_id == orphan.task.stack_id,
            e.c.resource_name == orphan.resource.name,
            e.c.physical_id == physical_id,
        )
        .order_by(e.c.id.desc())
        .limit(1)
    ).scalar()
    return action is not None and action != "DELETE"


def without_step(conn: Connection, claims: Iterable[tuple[TaskId, int]], *, now: float) -> ReadyTasks:
    """Wake the deletions that wait for these claims (task, attempt), of which no step runs; return them."""
    t = tables.task
    awaited = sorted(str(WaitsOn.step(*claim)) for claim in claims)
    rows = conn.execute(
        sa.select(t.c.id).where(t.c.waits_on.in_(awaited), t.c.state == TaskState.PARKED)
    ).scalars()
    return _wake(conn, tasks.lock_many(conn, list(rows), TaskState.PARKED), now=now)


def of_member(conn: Connection, member: MemberId) -> list[tuple[TaskId, int]]:
    """Return (task, shard) of the deletions that wait for steps of a conductor."""
    t = tables.task
    rows = conn.execute(
        sa.select(t.c.id, t.c.shard).where(t.c.member == member, t.c.state == TaskState.PARKED)
    )
    return [(TaskId(task_id), shard) for task_id, shard in rows]


def abandon(
    conn: Connection, task_ids: Iterable[TaskId], *, now: float, member: MemberId | None = None
) -> ReadyTasks:
    """Wake deletions that wait for steps of a dead conductor; return those made ready, by traversal.

    :param member: name of that conductor; deletions that wait under another name by now are left out.
    """
    locked = tasks.lock_many(conn, task_ids, TaskState.PARKED)
    if member is not None:
        waiting = {task_id for task_id, _ in of_member(conn, member)}
        locked = [row for row in locked if row.id in waiting]
    return _wake(conn, locked, now=now)


def _wake(conn: Connection, parked: Sequence[Locked], *, now: float) -> ReadyTasks:
    transitions.wake(conn, [row.id for row in parked], now=now)
    return by_traversal(parked)
