"""Reads for an overview of the installation: stuck stacks, conductors' claims and work, states of tasks."""

import typing
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..ids import MemberId, StackId, TaskId
from ..schema import tables
from ..states import ACTIVE, Status, TaskState

LATE = 30.0
"""Seconds past its moment after which nobody has acted on a row."""
_STATES = (
    sa.select(tables.task.c.id, tables.task.c.shard, tables.task.c.state)
    .where(tables.task.c.id > sa.bindparam("after"))
    .order_by(tables.task.c.id)
    .limit(sa.bindparam("most"))
)


@dataclass(frozen=True)
class StuckStack:
    """A stack in progress that makes no progress by itself.

    :ivar since: an instant since which it has made no progress; None: unknown.
    """

    id: StackId
    name: str
    project_id: str
    parent_id: StackId | None
    action: str
    status: str
    causes: frozenset[str]
    since: float | None


def stuck_stacks(
    conn: Connection, *, now: float, alive: Collection[str] | None, limit: int
) -> list[StuckStack]:
    """Return stacks of all projects that make no progress, those stuck for longest first.

    Its timeout (``timeout``) or its rollback (``rollback``) should have begun.  Or breakpoints hold all
    unfinished work (``held``).  Or nobody has acted on a task in time (``overdue``), a step does not stop
    (``cancel``), or a conductor that is not alive holds a task (``orphan``).

    :param alive: names of the members that are alive; None: unknown, so there are no orphans.
    :param limit: stacks that are read at most for each cause.
    """
    s = tables.stack
    t = tables.task
    causes: dict[StackId, dict[str, float | None]] = {}

    def note(cause: str, rows: sa.Select[typing.Any]) -> None:
        for stack_id, since in conn.execute(rows.limit(limit)):
            causes.setdefault(StackId(stack_id), {})[cause] = since

    busy = s.c.status == Status.IN_PROGRESS
    note("timeout", sa.select(s.c.id, s.c.deadline_at).where(busy, s.c.deadline_at < now - LATE))
    note("rollback", sa.select(s.c.id, s.c.rollback_at).where(s.c.rollback_at < now - LATE))
    note("held", sa.select(s.c.id, sa.null()).where(busy, s.c.remaining.is_not(None)))
    tasks = sa.select(t.c.stack_id, sa.func.min(t.c.due_at)).group_by(t.c.stack_id)
    note("overdue", tasks.where(t.c.due_at < now - LATE, t.c.state.in_(sorted(ACTIVE))))
    running = t.c.state == TaskState.RUNNING
    claims = sa.select(t.c.stack_id, sa.func.min(t.c.claimed_at)).where(running).group_by(t.c.stack_id)
    note("cancel", claims.where(t.c.stop_by < now))
    if alive is not None and (lost := _holders(conn) - set(alive)):
        note("orphan", claims.where(t.c.member.in_(sorted(lost))))
    return _stuck(conn, causes)


def _holders(conn: Connection) -> set[str]:
    t = tables.task
    rows = conn.execute(sa.select(t.c.member).where(t.c.state == TaskState.RUNNING).distinct())
    return {member for member in rows.scalars() if member is not None}


def _stuck(conn: Connection, causes_of: dict[StackId, dict[str, float | None]]) -> list[StuckStack]:
    s = tables.stack
    names = ("id", "name", "project_id", "parent_id", "action", "status")
    query = sa.select(*(s.c[name].label(name) for name in names)).where(s.c.id.in_(sorted(causes_of)))
    stuck = []
    for row in conn.execute(query).mappings() if causes_of else ():
        causes = causes_of[StackId(row["id"])]
        since = min((moment for moment in causes.values() if moment is not None), default=None)
        stuck.append(StuckStack(**row, causes=frozenset(causes), since=since))
    return sorted(stuck, key=lambda stack: (stack.since is None, stack.since or 0.0, stack.id))


@dataclass(frozen=True)
class ClaimInHand:
    """A task that a conductor holds.

    :ivar begun: whether its step has stored progress, so that it is polled.
    :ivar stop_by: the instant until which the step that was asked to stop may run.
    """

    id: TaskId
    stack_id: StackId
    stack_name: str
    project_id: str
    resource: str
    type: str
    kind: str
    state: TaskState
    attempt: int
    member: MemberId
    claimed_at: float | None
    stop_by: float | None
    expires_at: float | None
    begun: bool


def claims_of(conn: Connection, host: str, *, limit: int) -> Sequence[ClaimInHand]:
    """Return the tasks that the incarnations of a conductor hold, those claimed first at the beginning."""
    t = tables.task
    s = tables.stack
    r = tables.resource
    names = ("id", "stack_id", "kind", "state", "attempt", "member", "claimed_at", "stop_by", "expires_at")
    query = (
        sa.select(
            *(t.c[name] for name in names),
            s.c.name.label("stack_name"),
            s.c.project_id.label("project_id"),
            r.c.name.label("resource"),
            r.c.type,
            r.c.progress,
        )
        .join(s, s.c.id == t.c.stack_id)
        .outerjoin(r, r.c.id == t.c.resource_id)
        .where(
            t.c.member.startswith(f"{host}/", autoescape=True),
            t.c.state.in_([TaskState.RUNNING, TaskState.CANCELLED]),
        )
        .order_by(t.c.claimed_at, t.c.id)
        .limit(limit)
    )
    return [_claim(dict(row)) for row in conn.execute(query).mappings()]


def _claim(row: dict[str, typing.Any]) -> ClaimInHand:
    progress = row.pop("progress")
    named = {"resource": row["resource"] or "", "type": row["type"] or "", "state": TaskState(row["state"])}
    return ClaimInHand(**{**row, **named}, begun=progress is not None and progress["task"] == row["id"])


@dataclass(frozen=True)
class WorkDone:
    """The work that a conductor has done in some time.

    :ivar tasks: number of resources' tasks whose end it has stored.
    :ivar events: number of events that it has written, these ends among them.
    """

    tasks: int = 0
    events: int = 0


def work_done(conn: Connection, since: float) -> dict[str, WorkDone]:
    """Return the work that each conductor has done since an instant, by host; idle ones are left out."""
    e = tables.event
    has_ended = e.c.attempt.is_not(None) & (e.c.status != Status.IN_PROGRESS)
    statement = (
        sa.select(e.c.conductor, sa.func.sum(sa.case((has_ended, 1), else_=0)), sa.func.count())
        .where(e.c.at > since, e.c.conductor.is_not(None))
        .group_by(e.c.conductor)
    )
    return {host: WorkDone(int(tasks), int(events)) for host, tasks, events in conn.execute(statement)}


def task_states(conn: Connection, *, after: TaskId, limit: int) -> Sequence[tuple[TaskId, int, str]]:
    """Return the id, shard and state of tasks in the order of their ids.

    :param after: the id after which the page begins.
    :param limit: the number of tasks at most.
    """
    rows = conn.execute(_STATES, {"after": after, "most": limit})
    return [(TaskId(task_id), shard, state) for task_id, shard, state in rows]
