"""Plain reads and writes of the rows of tasks."""

import typing
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..batches import chunks
from ..ids import StackId, TaskId, TraversalId, TraversalNumber
from ..legacy_finish_tasks import IS_TASK
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import Standing, TaskState


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
    rows = conn.execute(sa.select(t).where(t.c.traversal == traversal, IS_TASK).order_by(t.c.id)).mappings()
    return [Task.of(dict(row)) for row in rows]


def running_of_stack(conn: Connection, stack_id: StackId, *, lock: bool = True) -> list[Task]:
    """The claimed tasks of a stack, of whatever traversal; their rows are locked, unless only looked at."""
    t = tables.task
    query = sa.select(t).where(t.c.stack_id == stack_id, t.c.state == TaskState.RUNNING).order_by(t.c.id)
    rows = conn.execute(query.with_for_update() if lock else query).mappings()
    return [Task.of(dict(row)) for row in rows]


def begun_of_traversal(conn: Connection, traversal: TraversalId) -> list[Task]:
    """Tasks of a traversal that have begun and now wait in the database: parked, or ready again.

    Without those that wait for nested stacks which stand at breakpoints (clocks.stand_behind): there nothing
    goes on.
    """
    t = tables.task
    rows = conn.execute(
        sa.select(t)
        .where(
            t.c.traversal == traversal,
            t.c.state.in_([TaskState.PARKED, TaskState.READY]),
            t.c.attempt > 0,
            t.c.due_at.is_not(None) | t.c.waits_on.is_(None) | t.c.waits_on.not_like("stack:%"),
        )
        .order_by(t.c.id)
    ).mappings()
    return [Task.of(dict(row)) for row in rows]


def supersede(conn: Connection, running: Iterable[Task], spared: Collection[TaskId]) -> None:
    """Say of running tasks, whose rows the caller has locked, that their traversal is superseded.

    :param spared: those that go on for the new one.
    """
    t = tables.task
    by_standing: dict[Standing, list[TaskId]] = {Standing.CARRIED_OVER: [], Standing.SUPERSEDED: []}
    for task in running:
        by_standing[Standing.CARRIED_OVER if task.id in spared else Standing.SUPERSEDED].append(task.id)
    for standing, ids in by_standing.items():
        for part in chunks(ids):
            conn.execute(sa.update(t).where(t.c.id.in_(part)).values(standing=standing))


def inherit(conn: Connection, task_ids: Iterable[TaskId], number: TraversalNumber) -> None:
    """Let a traversal, which counts them already, wait for tasks that it has taken over."""
    t = tables.task
    for part in chunks(task_ids):
        values = {"finish_id": number, "standing": Standing.CARRIED_OVER}
        conn.execute(sa.update(t).where(t.c.id.in_(part)).values(**values))


def set_successors(conn: Connection, task_id: TaskId, successors: Sequence[TaskId]) -> None:
    """Replace the successors of a task whose row the caller has locked."""
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id == task_id).values(successors=list(successors)))


class Locked(typing.NamedTuple):
    """What is to be known of a task whose row is locked in this transaction."""

    id: TaskId
    traversal: TraversalId
    stack_id: StackId


def lock(conn: Connection, which: sa.ColumnElement[bool], *, skip_locked: bool = False) -> list[Locked]:
    """The tasks for which `which` holds, locked in the order of their ids."""
    t = tables.task
    query = sa.select(t.c.id, t.c.traversal, t.c.stack_id).where(which).order_by(t.c.id)
    return [Locked(*row) for row in conn.execute(query.with_for_update(skip_locked=skip_locked))]


def lock_many(conn: Connection, task_ids: Iterable[TaskId], state: TaskState) -> list[Locked]:
    """Those of the tasks that are in a state."""
    t = tables.task
    return [
        row
        for part in chunks(sorted(task_ids))
        for row in lock(conn, sa.and_(t.c.id.in_(part), t.c.state == state))
    ]


def by_traversal(tasks: Iterable[Locked | Task]) -> ReadyTasks:
    """Return the ids of tasks by their traversals, as hints are sent."""
    found = ReadyTasks()
    for task in tasks:
        found.add(task.traversal, task.id)
    return found
