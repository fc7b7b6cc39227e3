"""Claims of ready tasks: from then on one member runs them, as a new attempt."""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...shapes import Json, JsonMap
from .. import bulk, resources
from ..bulk import OneOf, Write, Writes
from ..ids import MemberId, ResourceId, StackId, TaskId
from ..resources import StackLabel
from ..rows import Event, Resource, Task
from ..schema import tables
from ..states import ACTING, DELETING, SIGNALLED, SILENT, UNDECIDED, Status, TaskKind, TaskState
from . import transitions

SHOWN = frozenset(TaskKind) - UNDECIDED - SILENT
"""Kinds whose claim the resource shows, so that its row is written."""


@dataclass(frozen=True)
class InputValue:
    """The values of a resource that others refer to.

    :ivar id: id of its newest row.
    :ivar data: data that its type has stored; those of a nested stack say why outputs have no value.
    """

    id: ResourceId
    reference_id: Json
    attributes: JsonMap
    data: Json = None


@dataclass(frozen=True)
class Claim:
    """A task that this member holds, with all that its step needs to read.

    :ivar has_sinks: whether the root of its stack has event sinks.
    """

    task: Task
    resource: Resource
    inputs: Mapping[str, InputValue]
    stack_name: str
    project_id: str
    root_id: StackId
    has_sinks: bool

    @property
    def begun(self) -> bool:
        """Return whether an earlier attempt has stored progress, so that the step polls instead of starts."""
        progress = self.resource.progress
        return progress is not None and progress.get("task") == self.task.id


@dataclass(frozen=True)
class Claimant:
    """A member that claims tasks.

    :ivar host: its conductor's name, as events show it.
    """

    member: MemberId
    host: str


# Rows that another transaction claims at this moment are passed over: a conductor never waits for another.
_READY = (
    sa.select(tables.task)
    .where(OneOf(tables.task.c.id), tables.task.c.state == TaskState.READY)
    .order_by(tables.task.c.id)
    .with_for_update(skip_locked=True)
)
_LABELS = sa.select(tables.stack.c.id, *(tables.stack.c[name] for name in StackLabel._fields)).where(
    OneOf(tables.stack.c.id)
)
_IN_PROGRESS = (
    sa.update(tables.resource)
    .where(OneOf(tables.resource.c.id, "begun_ids"))
    .values(
        action=sa.bindparam("new_action"),
        status=Status.IN_PROGRESS,
        reason="state changed",
        updated_at=sa.bindparam("now", type_=sa.Float),
    )
)


@dataclass(frozen=True)
class Claimed:
    """The result of claiming tasks.

    :ivar started: events of the actions that start with the claims; the caller stores them.
    :ivar deleted: claimed tasks that have nothing to do.  Another task has deleted their resource meanwhile,
        or its creation, which still ran when they were planned, has failed.
    :ivar locked: tasks not claimed, because another transaction has locked their resource's row.
    """

    claims: Sequence[Claim] = ()
    started: Sequence[Event] = ()
    deleted: Sequence[Task] = ()
    locked: Sequence[Task] = ()


def claim(
    conn: Connection,
    task_ids: Collection[TaskId],
    *,
    who: Claimant,
    now: float,
    writes: Writes,
    waiting: Sequence[Task] = (),
) -> Claimed:
    """Claim the tasks that are ready and that nobody else claims now.

    It waits for no lock: it skips tasks whose row, or whose resource's row, another transaction holds.

    A task is ready only while its traversal is the current one: who supersedes a traversal cancels its ready
    tasks in the same transaction.

    :param writes: where the writes of the claims are put off: rows of tasks and resources.
    :param waiting: tasks to claim, too, which this transaction has just counted down to no predecessor.
    """
    candidates = list(waiting)
    for result in bulk.in_chunks(conn, _READY, task_ids):
        candidates += [Task.of(dict(row)) for row in result.mappings()]
    if not candidates:
        return Claimed()
    shown_ids = {task.resource_id for task in candidates if task.kind in SHOWN}
    resource_ids = {task.resource_id for task in candidates}
    resource_ids |= {ResourceId(i) for task in candidates for i in task.inputs.values()}
    resource_ids |= {
        task.spare_id for task in candidates if task.kind == TaskKind.REFRESH and task.spare_id is not None
    }
    claimed_rows = resources.lock_free(conn, resource_ids, shown_ids)
    skipped = [task for task in candidates if task.resource_id in claimed_rows.locked]
    free = [task for task in candidates if task.resource_id not in claimed_rows.locked]
    if not free:
        return Claimed(locked=skipped)
    claimed_tasks = _take(writes, free, who=who, now=now)
    rows = _with_replacements(conn, claimed_rows.resources)
    begun: list[tuple[Task, Resource]] = []
    deleted: list[Task] = []
    for task in (_of_replacement(conn, each, rows) for each in claimed_tasks):
        row = rows.get(task.resource_id)
        if row is None or (task.kind in ACTING and not row.is_there):
            deleted.append(task)
        else:
            begun.append((task, row))
    claims = [
        _claim(task, resource, rows, claimed_rows.stacks[resource.stack_id]) for task, resource in begun
    ]
    started = _mark_in_progress(writes, claims, who=who, now=now)
    return Claimed(claims, started, deleted, skipped)


def _of_replacement(conn: Connection, task: Task, rows: Mapping[ResourceId, Resource]) -> Task:
    """Return a refresh of a resource that was replaced since it was planned as one of the replacement.

    The older row may be deleted already.  A newer traversal waits for the tasks of a row, so it has to be the
    right one.
    """
    replacement = None if task.spare_id is None else rows.get(task.spare_id)
    # Of another stack: the replacement was never stored, and its id was given twice; see id_source.py.
    if task.kind != TaskKind.REFRESH or replacement is None or replacement.stack_id != task.stack_id:
        return task
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id == task.id).values(resource_id=replacement.id, spare_id=None))
    return replace(task, resource_id=replacement.id, spare_id=None)


def read(conn: Connection, task: Task) -> Claim | None:
    """Return the claim of a task that a member holds; None: its resource is deleted."""
    input_ids = {ResourceId(i) for i in task.inputs.values()}
    rows = _with_replacements(conn, resources.by_ids(conn, {*input_ids, task.resource_id}))
    if task.resource_id not in rows:
        return None
    return _claim(task, rows[task.resource_id], rows, _labels(conn, {task.stack_id})[task.stack_id])


def lock(conn: Connection, task: Task) -> bool:
    """Lock the claim of a task until the commit; return whether it is current, and not to be cancelled.

    :param task: the task as it was claimed.
    """
    t = tables.task
    current = sa.select(t.c.id).where(
        t.c.id == task.id,
        t.c.attempt == task.attempt,
        t.c.member == task.member,
        t.c.state == TaskState.RUNNING,
        t.c.stop_by.is_(None),
    )
    return conn.execute(current.with_for_update()).first() is not None


def _with_replacements(conn: Connection, rows: Mapping[ResourceId, Resource]) -> dict[ResourceId, Resource]:
    """Add the replacements of the resources that were replaced."""
    all_rows = dict(rows)
    ids = {row.replaced_by for row in rows.values() if row.replaced_by is not None}
    while missing := ids - all_rows.keys():
        more = resources.by_ids(conn, missing)
        all_rows.update(more)
        ids = {row.replaced_by for row in more.values() if row.replaced_by is not None}
    return all_rows


def _newest(rows: Mapping[ResourceId, Resource], resource_id: ResourceId) -> Resource | None:
    """Return the resource, or its last replacement."""
    row = rows.get(resource_id)
    while row is not None and row.replaced_by is not None and row.replaced_by in rows:
        row = rows[row.replaced_by]
    return row


def _take(writes: Writes, candidates: Sequence[Task], *, who: Claimant, now: float) -> list[Task]:
    transitions.claim(writes, [task.id for task in candidates], member=who.member, now=now)
    # The values that the update has stored.
    return [
        replace(
            task,
            state=TaskState.RUNNING,
            member=who.member,
            attempt=task.attempt + 1,
            # A task that this transaction has counted down is ready since now.
            ready_at=now if task.state == TaskState.WAITING else task.ready_at,
            claimed_at=now,
            waits_on=None,
            stop_by=None,
            expires_at=(
                task.expires_at if task.expires_at is not None or task.timeout is None else now + task.timeout
            ),
        )
        for task in candidates
    ]


def stack_names(conn: Connection, stack_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the name and the project's id of each stack."""
    return {stack_id: (label.name, label.project_id) for stack_id, label in _labels(conn, stack_ids).items()}


def _labels(conn: Connection, stack_ids: Iterable[str]) -> dict[str, StackLabel]:
    return {row.id: StackLabel(*row[1:]) for row in conn.execute(_LABELS, {"ids": sorted(stack_ids)})}


def _mark_in_progress(writes: Writes, claims: Sequence[Claim], *, who: Claimant, now: float) -> list[Event]:
    """Show the action on the resources, unless an earlier attempt has; return the events of that."""
    by_action: dict[str, list[int]] = {}
    started: list[Event] = []
    for claimed in claims:
        task = claimed.task
        resource = claimed.resource
        action = task.kind.upper()
        if task.kind not in SHOWN:
            continue
        if task.attempt > 1 and (resource.action, resource.status) == (action, Status.IN_PROGRESS):
            continue
        by_action.setdefault(action, []).append(resource.id)
        event = resource_event(claimed, resource.physical_id, Status.IN_PROGRESS, "state changed", who, now)
        started.append(event)
    for action, ids in sorted(by_action.items()):
        writes.append(Write(_IN_PROGRESS, {"begun_ids": sorted(ids), "new_action": action, "now": now}))
    return started


def action_of(kind: TaskKind) -> str:
    """Return the action of a kind of task as users see it."""
    if kind == TaskKind.OBSERVE:
        return "CHECK"
    if kind in SIGNALLED:
        return "SIGNAL"
    return "DELETE" if kind in DELETING else kind.upper()


def resource_event(
    claimed: Claim, physical_id: str | None, status: Status, reason: str, who: Claimant, now: float
) -> Event:
    """Return the event of a resource's action that reaches a status.

    :param physical_id: the resource's id outside, as it is by now.
    """
    resource = claimed.resource
    task = claimed.task
    return Event(
        stack_id=resource.stack_id,
        resource_name=resource.name,
        resource_type=resource.type,
        physical_id=physical_id,
        action=action_of(task.kind),
        status=status,
        reason=reason,
        conductor=who.host,
        attempt=task.attempt,
        ready_at=task.ready_at,
        claimed_at=task.claimed_at,
        at=now,
        has_sinks=claimed.has_sinks,
    )


def _claim(
    task: Task,
    resource: Resource,
    rows: Mapping[ResourceId, Resource],
    stack: StackLabel,
) -> Claim:
    # An adoption refers to the rows that existed before, even where those are to be replaced.
    current = rows.get if task.kind == TaskKind.ADOPT else functools.partial(_newest, rows)
    inputs = {
        name: InputValue(row.id, row.reference_id, row.attributes or {}, row.data)
        for name, i in task.inputs.items()
        if (row := current(ResourceId(i))) is not None
    }
    return Claim(task, resource, inputs, stack.name, stack.project_id, stack.root_id, stack.has_sinks)
