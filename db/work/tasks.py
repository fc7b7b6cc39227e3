"""Rows of tasks: cancel what has not started, look up what is due, wake, hand back, purge."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..batches import chunks
from ..ids import MemberId, StackId, TaskId, TraversalId
from ..legacy_finish_tasks import IS_TASK
from ..rows import ReadyTasks
from ..schema import tables
from ..states import FINAL, TaskKind, TaskState, redelivery_delay
from . import deadlines, transitions
from .cancel import cancel_unstarted as cancel_unstarted
from .release import release as release
from .task_rows import Locked, by_traversal, lock
from .task_rows import begun_of_traversal as begun_of_traversal
from .task_rows import get as get
from .task_rows import inherit as inherit
from .task_rows import insert_many as insert_many
from .task_rows import of_traversal as of_traversal
from .task_rows import running_of_stack as running_of_stack
from .task_rows import set_successors as set_successors
from .task_rows import supersede as supersede

PURGE_AGAIN = 60.0
"""Seconds until the next try to purge a traversal of which something still runs."""


def wake(conn: Connection, waits_on: str, *, now: float) -> ReadyTasks:
    """Let tasks be claimed that are parked for `waits_on`; return them by traversal, for hints."""
    t = tables.task
    parked = lock(conn, sa.and_(t.c.waits_on == waits_on, t.c.state == TaskState.PARKED))
    return wake_locked(conn, parked, now=now)


def wake_locked(conn: Connection, parked: Sequence[Locked], *, now: float) -> ReadyTasks:
    """Let parked tasks be claimed, whose rows the caller has locked; return them by traversal, for hints."""
    transitions.wake(conn, [row.id for row in parked], now=now)
    # A nested stack may have ended while it stood at breakpoints, and its parent with it.
    for stack_id, traversal in sorted({(row.stack_id, row.traversal) for row in parked}):
        deadlines.resume_deadline(conn, stack_id, traversal, now=now)
    return by_traversal(parked)


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
    stop_by: float | None
    member: MemberId | None
    request: str | None = None


def _due_statement() -> sa.Select[typing.Any]:
    t = tables.task
    last_due: sa.BindParameter[float] = sa.bindparam("last_due")
    behind = sa.or_(t.c.due_at > last_due, t.c.id > sa.bindparam("last_id"))
    return (
        sa.select(*(t.c[name] for name in DueTask.__dataclass_fields__))
        .where(t.c.due_at <= sa.bindparam("now"), t.c.due_at >= last_due, behind, IS_TASK)
        .order_by(t.c.due_at, t.c.id)
        .limit(sa.bindparam("most"))
    )


_DUE = _due_statement()


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[DueTask]:
    """Tasks with due_at <= now, oldest first, by the index on due_at.

    :param after: (due_at, id) of the last one seen, to read on.
    """
    last_due, last_id = after
    rows = conn.execute(_DUE, {"now": now, "last_due": last_due, "last_id": last_id, "most": limit})
    return [
        DueTask(**{**row, "state": TaskState(row["state"]), "kind": TaskKind(row["kind"])})
        for row in rows.mappings()
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
            still = sa.and_(t.c.id.in_(part), t.c.state == TaskState.READY, t.c.redelivered == count)
            found = [row.id for row in lock(conn, still, skip_locked=True)]
            conn.execute(
                sa.update(t)
                .where(t.c.id.in_(found))
                .values(redelivered=count + 1, due_at=now + redelivery_delay(count + 1))
            )
            repeated.extend(found)
    return repeated


def wake_parked(conn: Connection, seen: Sequence[DueTask], *, now: float) -> list[TaskId]:
    """Make ready the parked tasks whose moment has come; those that were still parked."""
    t = tables.task
    woken: list[TaskId] = []
    for part in chunks(task.id for task in seen):
        due = sa.and_(t.c.id.in_(part), t.c.state == TaskState.PARKED, t.c.due_at <= now)
        found = lock(conn, due, skip_locked=True)
        transitions.wake(conn, [row.id for row in found], now=now)
        woken.extend(row.id for row in found)
    return woken


def claims_of(conn: Connection, member: MemberId) -> list[tuple[TaskId, int, int]]:
    """(task, attempt, shard) of all claims of a member."""
    t = tables.task
    rows = conn.execute(
        sa.select(t.c.id, t.c.attempt, t.c.shard).where(t.c.member == member, t.c.state == TaskState.RUNNING)
    )
    return [(TaskId(task_id), attempt, shard) for task_id, attempt, shard in rows]


# Not "IS NOT NULL": a SQLite built without STAT4 reads the whole index for that, the NULLs too.
_CLAIMING = sa.select(tables.task.c.member).where(tables.task.c.member > "").distinct()


def claiming_members(conn: Connection) -> list[MemberId]:
    """All members that hold a claim now."""
    return [MemberId(member) for member in conn.execute(_CLAIMING).scalars()]


def purge_traversal(conn: Connection, traversal: TraversalId) -> int:
    """Delete the tasks of a traversal that is over, and its row; how many.

    While some of them still run (the traversal was superseded, or timed out) they are kept, and so is its
    row, whose due_at is put off: the tasks of a newer traversal may wait for their end.
    """
    t = tables.task
    work = (t.c.traversal == traversal, IS_TASK)
    # One that a conductor has not answered for stays: it would not be asked again.
    gone = conn.execute(
        sa.delete(t).where(*work, t.c.state.in_(sorted(FINAL)), t.c.member.is_(None))
    ).rowcount

    def has_tasks() -> bool:
        return conn.execute(sa.select(t.c.id).where(*work).limit(1)).scalar() is not None

    return gone + traversals.purge(conn, traversal, again=PURGE_AGAIN, has_tasks=has_tasks)
