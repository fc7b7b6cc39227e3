"""Rows of tasks: insert, cancel what has not started, look up what is due."""

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import tables
from .ids import MemberId, ResourceId, StackId, TaskId, TraversalId
from .states import UNSTARTED, Status, TaskKind, TaskState

Json = typing.Any
CHUNK = 500  # ids per IN list: far below SQLite's limit of variables, large enough to be one round trip


@dataclass(frozen=True)
class Task:
    """One vertex of a traversal's graph.

    :ivar pending: unfinished predecessors; for the finish task all unfinished tasks of the traversal.
    :ivar attempt: grows with each claim; a result counts only if it carries the latest one.
    :ivar timeout: seconds the action may take over all its attempts' polls; None: no limit.
    :ivar inputs: resource name -> resource id, for the values the definition refers to.
    """

    id: TaskId
    traversal: TraversalId
    stack_id: StackId
    kind: TaskKind
    state: TaskState
    pending: int
    shard: int
    resource_id: ResourceId | None = None
    attempt: int = 0
    member: MemberId | None = None
    due_at: float | None = None
    expires_at: float | None = None
    timeout: float | None = None
    retries_left: int = 0
    redelivered: int = 0
    finish_id: TaskId | None = None
    definition: Json = None
    inputs: Mapping[str, ResourceId] = field(default_factory=dict)
    successors: Sequence[TaskId] = ()
    waits_on: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, typing.Any]) -> "Task":
        """From a row of the table."""
        return cls(**{**row, "kind": TaskKind(row["kind"]), "state": TaskState(row["state"])})


def chunks(ids: Iterable[int]) -> Iterable[list[int]]:
    """The ids in ascending order, so that all writers lock rows in one order, in lists of at most CHUNK."""
    ordered = sorted(set(ids))
    return (ordered[i : i + CHUNK] for i in range(0, len(ordered), CHUNK))


def insert_many(conn: Connection, tasks: Sequence[Task]) -> None:
    """Store new tasks."""
    if tasks:
        conn.execute(sa.insert(tables.task), [asdict(task) for task in tasks])


def get(conn: Connection, task_id: TaskId) -> Task | None:
    """One task, or None."""
    row = conn.execute(sa.select(tables.task).where(tables.task.c.id == task_id)).mappings().first()
    return None if row is None else Task.of(dict(row))


def of_traversal(conn: Connection, traversal: TraversalId) -> list[Task]:
    """All tasks of a traversal in id order."""
    t = tables.task
    rows = conn.execute(sa.select(t).where(t.c.traversal == traversal).order_by(t.c.id)).mappings()
    return [Task.of(dict(row)) for row in rows]


def cancel_unstarted(conn: Connection, traversal: TraversalId, *, now: float) -> int:
    """Cancel what no conductor works on now; how many that were.

    A resource whose action had begun (its task is parked, or waits for its next try) is shown as FAILED.

    The statement waits for rows another transaction is changing and looks at them again, so a task that
    becomes ready at the same moment is cancelled as well, and one that is claimed stays running.
    """
    t, r = tables.task, tables.resource
    unstarted = (t.c.traversal == traversal, t.c.state.in_(UNSTARTED), t.c.kind != TaskKind.FINISH)
    begun = conn.execute(sa.select(t.c.resource_id).where(*unstarted, t.c.attempt > 0)).scalars()
    for part in chunks(begun):
        conn.execute(
            sa.update(r)
            .where(r.c.id.in_(part), r.c.status == Status.IN_PROGRESS)
            .values(status=Status.FAILED, reason=r.c.action + " aborted", updated_at=now)
        )
    done = conn.execute(
        sa.update(t)
        .where(*unstarted)
        .values(state=TaskState.CANCELLED, due_at=None, waits_on=None, member=None)
    )
    return done.rowcount


def running_of_stack(conn: Connection, stack_id: StackId) -> list[Task]:
    """The claimed tasks of a stack, of whatever traversal; their rows are locked."""
    t = tables.task
    rows = conn.execute(
        sa.select(t)
        .where(t.c.stack_id == stack_id, t.c.state == TaskState.RUNNING)
        .order_by(t.c.id)
        .with_for_update()
    ).mappings()
    return [Task.of(dict(row)) for row in rows]


def set_successors(conn: Connection, task_id: TaskId, successors: Sequence[TaskId]) -> None:
    """Replace the successors of a task whose row the caller has locked."""
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id == task_id).values(successors=list(successors)))


def wake(conn: Connection, waits_on: str, *, now: float) -> dict[TraversalId, list[TaskId]]:
    """Make ready what is parked for `waits_on`; the tasks by traversal, for hints."""
    t = tables.task
    rows = conn.execute(
        sa.select(t.c.id, t.c.traversal)
        .where(t.c.waits_on == waits_on, t.c.state == TaskState.PARKED)
        .order_by(t.c.id)
        .with_for_update()
    ).all()
    woken: dict[TraversalId, list[TaskId]] = {}
    for task_id, traversal in rows:
        woken.setdefault(TraversalId(traversal), []).append(TaskId(task_id))
    for ids in chunks(task_id for task_id, _ in rows):
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(ids), t.c.state == TaskState.PARKED)
            .values(state=TaskState.READY, due_at=now + REDELIVER_AFTER, redelivered=0, waits_on=None)
        )
    return woken


REDELIVER_AFTER = 5.0
"""Seconds after which the hint of a ready task is sent again; grows by doubling with each repetition."""
REDELIVER_MOST = 60.0


def redelivery_delay(redelivered: int) -> float:
    """Seconds until the next repetition of a hint that was repeated `redelivered` times."""
    return float(min(REDELIVER_MOST, REDELIVER_AFTER * 2 ** min(redelivered, 10)))


@dataclass(frozen=True)
class DueTask:
    """What a duty needs to know of a task whose moment has come."""

    id: TaskId
    traversal: TraversalId
    stack_id: StackId
    shard: int
    state: TaskState
    kind: TaskKind
    attempt: int
    redelivered: int
    due_at: float
    expires_at: float | None
    member: MemberId | None


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[DueTask]:
    """Tasks with due_at <= now, oldest first, by the index on due_at.

    :param after: (due_at, id) of the last one seen, to read on.
    """
    t = tables.task
    columns = [t.c[name] for name in DueTask.__dataclass_fields__]
    last_due, last_id = after
    rows = conn.execute(
        sa.select(*columns)
        .where(
            t.c.due_at <= now,
            t.c.due_at >= last_due,
            sa.or_(t.c.due_at > last_due, t.c.id > last_id),
        )
        .order_by(t.c.due_at, t.c.id)
        .limit(limit)
    ).mappings()
    return [
        DueTask(**{**row, "state": TaskState(row["state"]), "kind": TaskKind(row["kind"])}) for row in rows
    ]


def repeat_hints(conn: Connection, seen: Sequence[DueTask], *, now: float) -> list[TaskId]:
    """Put off the next repetition of the hints of ready tasks; those still ready, to be sent again."""
    t = tables.task
    by_count: dict[int, list[int]] = {}
    for task in seen:
        by_count.setdefault(task.redelivered, []).append(task.id)
    repeated: list[TaskId] = []
    for count, ids in sorted(by_count.items()):
        for part in chunks(ids):
            still = conn.execute(
                sa.select(t.c.id)
                .where(t.c.id.in_(part), t.c.state == TaskState.READY, t.c.redelivered == count)
                .order_by(t.c.id)
                .with_for_update(skip_locked=True)
            ).scalars()
            found = list(still)
            conn.execute(
                sa.update(t)
                .where(t.c.id.in_(found))
                .values(redelivered=count + 1, due_at=now + redelivery_delay(count + 1))
            )
            repeated.extend(TaskId(i) for i in found)
    return repeated


def wake_parked(conn: Connection, seen: Sequence[DueTask], *, now: float) -> list[TaskId]:
    """Make ready the parked tasks whose moment has come; those that were still parked."""
    t = tables.task
    woken: list[TaskId] = []
    for part in chunks(task.id for task in seen):
        found = list(
            conn.execute(
                sa.select(t.c.id)
                .where(t.c.id.in_(part), t.c.state == TaskState.PARKED, t.c.due_at <= now)
                .order_by(t.c.id)
                .with_for_update(skip_locked=True)
            ).scalars()
        )
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(found))
            .values(state=TaskState.READY, due_at=now + REDELIVER_AFTER, redelivered=0, waits_on=None)
        )
        woken.extend(TaskId(i) for i in found)
    return woken


def release(
    conn: Connection, seen: Sequence[tuple[TaskId, int]], *, now: float
) -> dict[TraversalId, list[TaskId]]:
    """Give back claims (task, attempt) whose conductor cannot work on them any more.

    The next claim raises the attempt, so a late result of the old one is refused.
    :returns: the tasks made ready, by traversal.
    """
    t = tables.task
    attempts = dict(seen)
    freed: dict[TraversalId, list[TaskId]] = {}
    for part in chunks(attempts):
        rows = conn.execute(
            sa.select(t.c.id, t.c.traversal, t.c.attempt)
            .where(t.c.id.in_(part), t.c.state == TaskState.RUNNING)
            .order_by(t.c.id)
            .with_for_update()
        ).all()
        ids = [task_id for task_id, _, attempt in rows if attempt == attempts[task_id]]
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(ids))
            .values(state=TaskState.READY, member=None, due_at=now + REDELIVER_AFTER, redelivered=0)
        )
        for task_id, traversal, _ in rows:
            if task_id in set(ids):
                freed.setdefault(TraversalId(traversal), []).append(TaskId(task_id))
    return freed


def claims_of(conn: Connection, member: MemberId) -> list[tuple[TaskId, int, int]]:
    """(task, attempt, shard) of all claims of a member."""
    t = tables.task
    rows = conn.execute(
        sa.select(t.c.id, t.c.attempt, t.c.shard).where(t.c.member == member, t.c.state == TaskState.RUNNING)
    )
    return [(TaskId(task_id), attempt, shard) for task_id, attempt, shard in rows]


def claiming_members(conn: Connection) -> list[MemberId]:
    """All members that hold a claim now."""
    t = tables.task
    rows = conn.execute(sa.select(t.c.member).where(t.c.member.is_not(None)).distinct())
    return [MemberId(member) for member in rows.scalars()]


def purge_traversal(conn: Connection, traversal: TraversalId) -> int:
    """Delete the tasks of a finished traversal; how many."""
    return conn.execute(sa.delete(tables.task).where(tables.task.c.traversal == traversal)).rowcount
