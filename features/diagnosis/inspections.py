"""Reads that explain why a stack is not finished: few statements for a stack of any size."""

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...db import events, statements
from ...db.ids import AwaitedKind, MemberId, StackId, TaskId, TraversalId, WaitsOn
from ...db.queries import guests
from ...db.queries.guests import AwaitedGuest
from ...db.rows import Stack
from ...db.schema import tables
from ...db.stacks import with_tags
from ...db.states import ACTIVE, Standing, Status, TaskKind, TaskState
from ...db.work import breakpoint_rules
from ...db.work.tasks import WAITS_FOR_STACK

SHOWN = sorted({*ACTIVE, TaskState.HELD})


@dataclass(frozen=True)
class Unfinished:
    """A task that is not final, and its surroundings.

    :ivar begun: whether its step has stored progress, so that it is polling, or waits for its next poll.
    :ivar told_at: the instant at which its resource's row was written last.
    :ivar traversal_now: the present traversal of its stack.
    :ivar request: the id of the user's request that it belongs to; None: a duty started it.
    :ivar path: names from the requested stack down to its resource: ``NESTED/…/NAME``.
    :ivar held_since: the instant at which the breakpoint that holds it was reached; None: that event was
        purged.
    """

    id: TaskId
    stack_id: StackId
    traversal: TraversalId
    shard: int
    kind: TaskKind
    state: TaskState
    standing: Standing
    attempt: int
    member: MemberId | None
    ready_at: float | None
    claimed_at: float | None
    due_at: float | None
    expires_at: float | None
    stop_by: float | None
    retries_left: int
    redelivered: int
    waits_on: WaitsOn | None
    hook: str | None
    resource: str
    type: str
    reason: str
    told_at: float
    begun: bool
    stack_name: str
    traversal_now: TraversalId
    path: str
    request: str | None = None
    held_since: float | None = None


@dataclass(frozen=True)
class Child:
    """A nested stack that a task waits for.

    :ivar is_paused: whether its deadline is paused, because breakpoints hold all of its unfinished tasks.
    """

    id: StackId
    name: str
    action: str
    status: str
    is_paused: bool


@dataclass(frozen=True)
class Waiting:
    """The unfinished work of a stack and of those nested in it.

    :ivar tasks: tasks whose state explains something, the most important ones first.
    :ivar counts: number of all tasks that are not final, by state.
    :ivar children: nested stacks that tasks wait for, by id.
    :ivar handles: names of the resources that tasks wait for, by id.
    :ivar guests: the guests of the deployments that tasks wait for, by the id of the resource.
    """

    tasks: Sequence[Unfinished]
    counts: Mapping[TaskState, int]
    children: Mapping[str, Child]
    handles: Mapping[str, str]
    guests: Mapping[str, AwaitedGuest] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedResource:
    """A resource whose last action failed."""

    path: str
    action: str
    reason: str


@dataclass(frozen=True)
class LongStep:
    """A step that has been in its first call for long."""

    stack_id: StackId
    stack_name: str
    resource: str
    member: MemberId
    claimed_at: float


def find(conn: Connection, name_or_id: str, project_id: str | None = None, *, limit: int = 5) -> list[Stack]:
    """Return the stack of that id, or else those of that name that are not deleted, nested ones too.

    :param project_id: id of the project whose stacks are searched; None: all projects.
    """
    s = tables.stack
    conditions = () if project_id is None else (s.c.project_id == project_id,)
    for which in (
        s.c.id == name_or_id,
        s.c.live_name == name_or_id,
        sa.and_(s.c.name == name_or_id, s.c.list_group.in_(tables.LIVING)),
    ):
        rows = conn.execute(
            sa.select(*tables.STACK_COLUMNS).where(which, *conditions).order_by(s.c.created_at).limit(limit)
        ).mappings()
        if stacks := with_tags(conn, [dict(row) for row in rows]):
            return stacks
    return []


def waiting(conn: Connection, stack_id: StackId, *, present: Collection[str], limit: int) -> Waiting:
    """Return the unfinished work of the stack and of those nested in it.

    :param present: names of the members that are alive: tasks that others hold come first.
    :param limit: number of tasks that are read at most.
    """
    t = tables.task
    s = tables.stack
    rows = conn.execute(_tasks(stack_id, present).limit(limit)).mappings().all()
    where = statements.paths(conn, stack_id, {row["stack_id"] for row in rows})
    unfinished = _with_reached(conn, [_unfinished(dict(row), where) for row in rows])
    counted = conn.execute(
        sa.select(t.c.state, sa.func.count())
        .join(s, sa.and_(s.c.id == t.c.stack_id, s.c.traversal == t.c.traversal))
        .where(
            t.c.stack_id.in_(statements.below(stack_id)),
            t.c.state.in_([*SHOWN, TaskState.WAITING]),
        )
        .group_by(t.c.state)
    )
    counts = {TaskState(state): int(count) for state, count in counted}
    awaited = {task.waits_on for task in unfinished if task.waits_on is not None}
    handles = _handles(conn, awaited)
    polls = guests.awaited(conn, {row.id for row in handles}) if handles else {}
    names = {str(row.id): row.name for row in handles}
    servers = {str(row.id): polls[row.id] for row in handles if row.id in polls}
    return Waiting(unfinished, counts, children(conn, awaited), names, servers)


def _with_reached(conn: Connection, unfinished: Sequence[Unfinished]) -> list[Unfinished]:
    """Add the moments at which breakpoints were hit, which only their events hold."""
    breakpoints = {
        (t.stack_id, t.resource, breakpoint_rules.reached_reason(t.hook)): t.id for t in unfinished if t.hook
    }
    times = events.latest(
        conn, {stack for stack, _, _ in breakpoints}, {reason for _, _, reason in breakpoints}
    )
    since = {breakpoints[key]: at for key, at in times.items() if key in breakpoints}
    return [replace(task, held_since=since.get(task.id)) for task in unfinished]


def page(conn: Connection, stack_id: StackId, *, after: int, limit: int) -> list[Unfinished]:
    """Return a page of the same tasks in the order of their ids.

    :param after: id of the last task of the page before.
    """
    t = tables.task
    query = _tasks(stack_id, ()).order_by(None).where(t.c.id > after).order_by(t.c.id).limit(limit)
    rows = conn.execute(query).mappings().all()
    where = statements.paths(conn, stack_id, {row["stack_id"] for row in rows})
    return [_unfinished(dict(row), where) for row in rows]


def _tasks(stack_id: StackId, present: Collection[str]) -> sa.Select[typing.Any]:
    t = tables.task
    s = tables.stack
    r = tables.resource
    columns = [t.c[name] for name in Unfinished.__dataclass_fields__ if name in t.c and name != "reason"]
    for_child = WAITS_FOR_STACK
    absent = t.c.member.not_in(sorted(present)) if present else t.c.member > ""
    rank = sa.case(
        (t.c.state == TaskState.CANCELLED, 7),  # Nothing waits for it any more.
        (for_child, 6),  # The nested stack has tasks of its own.
        (sa.and_(t.c.state == TaskState.RUNNING, absent), 0),
        (t.c.stop_by.is_not(None), 1),
        (t.c.state == TaskState.HELD, 2),
        (t.c.state == TaskState.PARKED, 3),
        (t.c.state == TaskState.READY, 4),
        else_=5,
    )
    return (
        sa.select(
            *columns,
            r.c.name.label("resource"),
            r.c.type,
            r.c.reason,
            r.c.updated_at.label("told_at"),
            r.c.progress,
            s.c.name.label("stack_name"),
            s.c.traversal.label("traversal_now"),
        )
        .join(s, s.c.id == t.c.stack_id)
        .outerjoin(r, r.c.id == t.c.resource_id)
        .where(
            t.c.stack_id.in_(statements.below(stack_id)),
            sa.or_(t.c.state.in_(SHOWN), sa.and_(t.c.state == TaskState.CANCELLED, t.c.member > "")),
        )
        .order_by(rank, sa.func.coalesce(t.c.claimed_at, 0.0), t.c.id)
    )


def _unfinished(row: Mapping[str, typing.Any], where: Mapping[str, str]) -> Unfinished:
    values = {name: row[name] for name in Unfinished.__dataclass_fields__ if name in row}
    progress = row["progress"]
    name = row["resource"] or f"task {row['id']}"
    return Unfinished(
        **{
            **values,
            "kind": TaskKind(row["kind"]),
            "state": TaskState(row["state"]),
            "waits_on": None if row["waits_on"] is None else WaitsOn.parse(row["waits_on"]),
            "standing": Standing(row["standing"]),
            "begun": progress is not None and progress.get("task") == row["id"],
            "resource": name,
            "type": row["type"] or "",
            "reason": row["reason"] or "",
            "told_at": row["told_at"] or 0.0,
            "path": f"{where.get(row['stack_id'], '')}{name}",
        }
    )


def children(conn: Connection, awaited: Iterable[WaitsOn]) -> dict[str, Child]:
    """Return the nested stacks that tasks wait for, by their ids."""
    s = tables.stack
    ids = sorted(one.key for one in awaited if one.is_stack)
    if not ids:
        return {}
    rows = conn.execute(
        sa.select(s.c.id, s.c.name, s.c.action, s.c.status, s.c.remaining).where(s.c.id.in_(ids))
    )
    return {
        row.id: Child(StackId(row.id), row.name, row.action, row.status, row.remaining is not None)
        for row in rows
    }


def _handles(conn: Connection, awaited: Iterable[WaitsOn]) -> Sequence[typing.Any]:
    """Return id and name of the resources that are waited for."""
    r = tables.resource
    ids = sorted(int(one.key) for one in awaited if one.kind == AwaitedKind.RESOURCE)
    query = sa.select(r.c.id, r.c.name).where(r.c.id.in_(ids))
    return conn.execute(query).all() if ids else ()


def failed_resources(conn: Connection, stack_id: StackId, *, limit: int) -> list[FailedResource]:
    """Return the failed resources of the stack and of those nested in it, the first cause first.

    A nested stack fails before the resource that it is nested in.
    """
    s = tables.stack
    r = tables.resource
    rows = conn.execute(
        sa.select(r.c.stack_id, r.c.name, r.c.action, r.c.reason)
        .join(s, s.c.id == r.c.stack_id)
        .where(
            r.c.stack_id.in_(statements.below(stack_id)),
            r.c.status == Status.FAILED,
            r.c.snapshot_id.is_(None),
            s.c.deleted_at.is_(None),
        )
        .order_by(r.c.updated_at, s.c.depth.desc(), r.c.id)
        .limit(limit)
    ).all()
    where = statements.paths(conn, stack_id, {row.stack_id for row in rows})
    return [FailedResource(f"{where[row.stack_id]}{row.name}", row.action, row.reason) for row in rows]


def longest_steps(conn: Connection, present: Collection[str], *, limit: int) -> list[LongStep]:
    """Return the running tasks of these members that were claimed longest ago, and have no progress since."""
    t = tables.task
    s = tables.stack
    r = tables.resource
    if not present:
        return []
    rows = conn.execute(
        sa.select(s.c.id, s.c.name, r.c.name.label("resource"), t.c.member, t.c.claimed_at)
        .join(s, s.c.id == t.c.stack_id)
        .join(r, r.c.id == t.c.resource_id)
        .where(
            t.c.member.in_(sorted(present)),
            t.c.state == TaskState.RUNNING,
            sa.or_(r.c.progress.is_(None), r.c.updated_at <= t.c.claimed_at),
        )
        .order_by(t.c.claimed_at, t.c.id)
        .limit(limit)
    )
    return [
        LongStep(StackId(row.id), row.name, row.resource, MemberId(row.member), row.claimed_at or 0.0)
        for row in rows
    ]
