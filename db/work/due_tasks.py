"""Tasks that are due: duties find them by one index, repeat their hints, wake them, and purge the finished.

An operator may do the same before the tasks are due.
"""

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk, traversals
from ..bulk import chunks
from ..ids import MemberId, StackId, TaskId, TraversalId, WaitsOn
from ..rows import ReadyTasks
from ..schema import tables
from ..states import FINAL, REDELIVER_AFTER, TaskKind, TaskState, redelivery_delay, turn_of
from . import countdown, transitions
from .tasks import by_traversal, lock, lock_many

PURGE_AGAIN = 60.0
"""Seconds until the next try to purge a traversal of which something still runs."""


def wake(conn: Connection, waits_on: WaitsOn, *, now: float) -> ReadyTasks:
    """Let the tasks be claimed that are parked for `waits_on`; return them by traversal."""
    t = tables.task
    parked = lock(conn, sa.and_(t.c.waits_on == str(waits_on), t.c.state == TaskState.PARKED))
    return countdown.wake(conn, parked, now=now)


def wake_for_stacks(conn: Connection, stack_ids: Iterable[StackId], *, now: float) -> ReadyTasks:
    """Let the tasks be claimed that are parked for any of these stacks; return them by traversal."""
    t = tables.task
    names = [str(WaitsOn.stack(stack_id)) for stack_id in stack_ids]
    # Few stacks are nested, so one query finds those that a task waits for.
    awaited = conn.execute(sa.select(t.c.waits_on).where(t.c.waits_on.in_(names)).distinct()).scalars()
    woken = ReadyTasks()
    for name in sorted(awaited):
        woken.merge(wake(conn, WaitsOn.parse(name), now=now))
    return woken


def wake_parked(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> ReadyTasks:
    """Let parked tasks be claimed without their event; return those that were parked, by traversal.

    A step that is woken too early polls, and parks its task again.
    """
    return countdown.wake(conn, lock_many(conn, task_ids, TaskState.PARKED), now=now)


@dataclass(frozen=True)
class DueTask:
    """A task whose `due_at` has passed, as duties read it."""

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
    later = sa.or_(t.c.due_at > last_due, t.c.id > sa.bindparam("last_id"))
    return (
        sa.select(*(t.c[name] for name in DueTask.__dataclass_fields__))
        .where(t.c.due_at <= sa.bindparam("now"), t.c.due_at >= last_due, later)
        .order_by(t.c.due_at, t.c.id)
        .limit(sa.bindparam("most"))
    )


_DUE = _due_statement()
_STATES = frozenset(TaskState)
_KINDS = frozenset(TaskKind)


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[DueTask]:
    """Return the tasks with due_at <= now, the oldest first, by the index on due_at.

    :param after: (due_at, id) of the last task of the page before.
    """
    last_due, last_id = after
    rows = conn.execute(_DUE, {"now": now, "last_due": last_due, "last_id": last_id, "most": limit})
    return [_due_task(dict(row)) for row in rows.mappings()]


def _due_task(row: Mapping[str, typing.Any]) -> DueTask:
    """Return a due task.  One of a kind that this release does not know counts as a ready one does.

    Whoever claims it finds that, and fails its stack; the other tasks of the page are none the worse.
    """
    state = TaskState(row["state"]) if row["state"] in _STATES else TaskState.READY
    kind = TaskKind(row["kind"]) if row["kind"] in _KINDS else TaskKind.CHECK
    return DueTask(**{**row, "state": state, "kind": kind})


def repeat_hints(conn: Connection, due: Sequence[DueTask], *, now: float) -> list[TaskId]:
    """Schedule the next repetition of ready tasks' hints; return the tasks still ready, to be hinted at now.

    Rows that others hold are skipped: their change of the task comes first, and the next round finds it.
    """
    t = tables.task
    count_of = {task.id: task.redelivered for task in due}
    rows: list[bulk.Row] = []
    for chunk in chunks(count_of):
        ready = sa.and_(t.c.id.in_(chunk), t.c.state == TaskState.READY)
        query = sa.select(t.c.id, t.c.redelivered).where(ready).order_by(t.c.id)
        for task_id, count in conn.execute(query.with_for_update(skip_locked=True)):
            if count == count_of[task_id]:
                later = redelivery_delay(count + 1) + turn_of(len(rows))
                rows.append({"id": task_id, "redelivered": count + 1, "due_at": now + later})
    bulk.update(conn, tables.task, rows)
    return [row["id"] for row in rows]


def hasten_hints(conn: Connection, traversals: Iterable[TraversalId], *, now: float) -> int:
    """Let the hints of ready tasks be repeated at once, for a conductor that was to run some has died.

    :returns: the number of tasks.
    """
    t = tables.task
    waiting = sa.and_(t.c.traversal.in_(sorted(traversals)), t.c.state == TaskState.READY, t.c.due_at > now)
    ids = [row.id for row in lock(conn, waiting, skip_locked=True)]
    bulk.update(conn, tables.task, [{"id": task_id, "due_at": now} for task_id in ids])
    return len(ids)


def restart_hints(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> ReadyTasks:
    """Repeat the hints of ready tasks from the first interval on; return the tasks, to be hinted at now."""
    t = tables.task
    ready = lock_many(conn, task_ids, TaskState.READY)
    for chunk in chunks(row.id for row in ready):
        values = {"redelivered": 0, "due_at": now + REDELIVER_AFTER}
        conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(values))
    return by_traversal(ready)


def wake_due(conn: Connection, tasks: Sequence[DueTask], *, now: float) -> list[TaskId]:
    """Let the parked tasks be claimed that are due; return those that were still parked."""
    t = tables.task
    woken: list[TaskId] = []
    for chunk in chunks(task.id for task in tasks):
        due = sa.and_(t.c.id.in_(chunk), t.c.state == TaskState.PARKED, t.c.due_at <= now)
        locked = lock(conn, due, skip_locked=True)
        transitions.wake(conn, [row.id for row in locked], now=now)
        woken.extend(row.id for row in locked)
    return woken


def purge_traversal(conn: Connection, traversal: TraversalId) -> int:
    """Delete the final tasks of a traversal that has ended, and then its row; return how many rows.

    Some tasks still run if the traversal was superseded or timed out.  Those are kept, and so is its row,
    which is due again later, because tasks of a newer traversal may wait for their end.
    """
    t = tables.task
    of_traversal = t.c.traversal == traversal
    # A task that a conductor has not answered for stays: nobody would ask that conductor again.
    count = conn.execute(
        sa.delete(t).where(of_traversal, t.c.state.in_(sorted(FINAL)), t.c.member.is_(None))
    ).rowcount

    def has_tasks() -> bool:
        return conn.execute(sa.select(t.c.id).where(of_traversal).limit(1)).scalar() is not None

    return count + traversals.purge(conn, traversal, again=PURGE_AGAIN, has_tasks=has_tasks)
