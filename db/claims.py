"""Claiming ready tasks: the step from "may be done" to "is done by this member, as this attempt"."""

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import events, resources, tables
from .events import Event
from .ids import MemberId, ResourceId, TaskId
from .resources import Resource
from .states import Status, TaskKind, TaskState
from .tasks import Task, chunks

Json = typing.Any
EXPIRED_GRACE = 30.0


@dataclass(frozen=True)
class InputValue:
    """What another resource gives to those that refer to it."""

    reference_id: Json
    attributes: Mapping[str, Json]


@dataclass(frozen=True)
class Claim:
    """A task that this member holds, with all it needs: no further read is due before its step.

    :ivar begun: an earlier attempt of this task has stored progress, so the step looks instead of starts.
    """

    task: Task
    resource: Resource
    inputs: Mapping[str, InputValue]
    stack_name: str
    tenant: str

    @property
    def begun(self) -> bool:
        """See the class."""
        progress = self.resource.progress
        return progress is not None and progress["task"] == self.task.id


@dataclass(frozen=True)
class Claimant:
    """Who claims.

    :ivar host: shown in events.
    """

    member: MemberId
    host: str


def claim(conn: Connection, task_ids: Iterable[TaskId], *, who: Claimant, now: float) -> list[Claim]:
    """Claim those of the tasks that are ready and that nobody else is claiming now.

    A task is ready only while its traversal is the current one, for whoever supersedes a traversal cancels
    its ready tasks in the same transaction.
    """
    taken: list[Task] = []
    for part in chunks(task_ids):
        taken += _take(conn, part, who=who, now=now)
    if not taken:
        return []
    wanted = {task.resource_id for task in taken if task.resource_id is not None}
    wanted |= {ResourceId(i) for task in taken for i in task.inputs.values()}
    rows = resources.by_ids(conn, wanted)
    names = _stack_names(conn, {task.stack_id for task in taken})
    begun = [(task, rows[task.resource_id]) for task in taken if task.resource_id in rows]
    _mark_in_progress(conn, begun, who=who, now=now)
    return [_claim(task, resource, rows, names[task.stack_id]) for task, resource in begun]


def _take(conn: Connection, ids: Sequence[int], *, who: Claimant, now: float) -> list[Task]:
    t = tables.task
    rows = conn.execute(
        sa.select(t)
        .where(t.c.id.in_(ids), t.c.state == TaskState.READY)
        .order_by(t.c.id)
        .with_for_update(skip_locked=True)
    ).mappings()
    seen = [Task.of(dict(row)) for row in rows]
    if not seen:
        return []
    expiry = sa.func.coalesce(t.c.expires_at, now + t.c.timeout)
    # One that has expired already is claimed to be failed; that takes a moment, in which the duty for
    # expired claims must not take it away again.
    due = sa.case((expiry <= now, now + EXPIRED_GRACE), else_=expiry)
    conn.execute(
        sa.update(t)
        .where(t.c.id.in_([task.id for task in seen]))
        .values(
            state=TaskState.RUNNING,
            member=who.member,
            attempt=t.c.attempt + 1,
            waits_on=None,
            expires_at=expiry,
            due_at=due,
        )
    )
    return [
        replace(
            task,
            state=TaskState.RUNNING,
            member=who.member,
            attempt=task.attempt + 1,
            waits_on=None,
            expires_at=_expiry(task, now),
        )
        for task in seen
    ]


def _expiry(task: Task, now: float) -> float | None:
    """As the statement above sets it."""
    if task.expires_at is not None or task.timeout is None:
        return task.expires_at
    return now + task.timeout


def _stack_names(conn: Connection, stack_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    s = tables.stack
    rows = conn.execute(sa.select(s.c.id, s.c.name, s.c.tenant).where(s.c.id.in_(sorted(stack_ids))))
    return {stack_id: (name, tenant) for stack_id, name, tenant in rows}


def _mark_in_progress(
    conn: Connection, begun: Sequence[tuple[Task, Resource]], *, who: Claimant, now: float
) -> None:
    """Show the action on the resource and in the events; not again for a later attempt of the same task."""
    by_action: dict[str, list[int]] = {}
    started: list[Event] = []
    for task, resource in begun:
        action = task.kind.upper()
        if task.attempt > 1 and (resource.action, resource.status) == (action, Status.IN_PROGRESS):
            continue
        by_action.setdefault(action, []).append(resource.id)
        started.append(resource_event(resource, task.kind, Status.IN_PROGRESS, "state changed", who, now))
    r = tables.resource
    for action, ids in sorted(by_action.items()):
        conn.execute(
            sa.update(r)
            .where(r.c.id.in_(sorted(ids)))
            .values(action=action, status=Status.IN_PROGRESS, reason="state changed", updated_at=now)
        )
    events.add_many(conn, started)


def resource_event(
    resource: Resource, kind: TaskKind, status: Status, reason: str, who: Claimant, now: float
) -> Event:
    """The event of a resource's action reaching a status."""
    return events.new(
        stack_id=resource.stack_id,
        resource_name=resource.name,
        resource_type=resource.type,
        physical_id=resource.physical_id,
        action=kind.upper(),
        status=status,
        reason=reason,
        conductor=who.host,
        at=now,
    )


def _claim(
    task: Task, resource: Resource, rows: Mapping[ResourceId, Resource], stack: tuple[str, str]
) -> Claim:
    inputs = {
        name: InputValue(rows[ResourceId(i)].reference_id, rows[ResourceId(i)].attributes or {})
        for name, i in task.inputs.items()
        if ResourceId(i) in rows
    }
    return Claim(task=task, resource=resource, inputs=inputs, stack_name=stack[0], tenant=stack[1])
