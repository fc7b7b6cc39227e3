"""Plain reads and writes of the rows of tasks."""

import itertools
import typing
from collections.abc import Collection, Iterable, Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk
from ..bulk import chunks
from ..ids import AwaitedKind, MemberId, ResourceId, StackId, TaskId, TraversalId, TraversalNumber
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import FINAL, INDEPENDENT, Standing, TaskKind, TaskState, turn_of

_AWAITED = f"{AwaitedKind.STACK}:"
# With coalesce, because NOT NULL is NULL: a task that is parked until a retry waits for nothing.
WAITS_FOR_STACK = sa.func.coalesce(tables.task.c.waits_on, "").like(f"{_AWAITED}%")
"""Condition: a parked task waits for a nested stack."""
AWAITED_STACK = sa.func.substr(tables.task.c.waits_on, len(_AWAITED) + 1)
"""The id of the nested stack that it waits for."""


def insert_many(conn: Connection, tasks: Sequence[Task]) -> None:
    """Store new tasks; their ids are the transaction's own."""
    bulk.insert_new(conn, tables.task, new_rows(tasks))


def new_rows(tasks: Iterable[Task]) -> Iterator[dict[str, typing.Any]]:
    """Yield the rows of new tasks; the hints of many are repeated one after another."""
    numbers = itertools.count()

    def row_of(task: Task) -> dict[str, typing.Any]:
        row = task.to_row()
        if task.due_at is not None:
            row["due_at"] = task.due_at + turn_of(next(numbers))
        return row

    return map(row_of, tasks)


def get(conn: Connection, task_id: TaskId) -> Task | None:
    """Return a task; None: it is not stored any more."""
    row = conn.execute(sa.select(tables.task).where(tables.task.c.id == task_id)).mappings().first()
    return None if row is None else Task.of(dict(row))


def of_traversal(conn: Connection, traversal: TraversalId) -> list[Task]:
    """Return all tasks of a traversal, in id order."""
    t = tables.task
    rows = conn.execute(sa.select(t).where(t.c.traversal == traversal).order_by(t.c.id)).mappings()
    return [Task.of(dict(row)) for row in rows]


def running_of_stack(conn: Connection, stack_id: StackId, *, lock: bool = True) -> list[Task]:
    """Return the claimed tasks of a stack, of any traversal, in id order.

    :param lock: whether their rows are locked until the transaction ends.
    """
    t = tables.task
    query = sa.select(t).where(t.c.stack_id == stack_id, t.c.state == TaskState.RUNNING).order_by(t.c.id)
    rows = conn.execute(query.with_for_update() if lock else query).mappings()
    return [Task.of(dict(row)) for row in rows]


def unfinished_of(conn: Connection, stack_id: StackId, resource_id: ResourceId, kind: TaskKind) -> int:
    """Return how many tasks of a kind have not ended for a resource."""
    t = tables.task.c
    of_resource = sa.and_(t.stack_id == stack_id, t.resource_id == resource_id, t.kind == kind)
    query = sa.select(sa.func.count()).where(of_resource, t.state.not_in(sorted(FINAL)))
    return int(conn.execute(query).scalar_one())


def is_unclaimed(conn: Connection, stack_id: StackId, resource_id: ResourceId, kind: TaskKind) -> bool:
    """Return whether a task of a kind waits for its next claim for a resource."""
    t = tables.task.c
    of_resource = sa.and_(t.stack_id == stack_id, t.resource_id == resource_id, t.kind == kind)
    query = sa.select(t.id).where(of_resource, t.state.in_((TaskState.READY, TaskState.PARKED)))
    return conn.execute(query.limit(1)).first() is not None


def claimed_by(conn: Connection, member: MemberId) -> list[tuple[TaskId, int, int]]:
    """Return (task, attempt, shard) of all claims of a member."""
    t = tables.task
    rows = conn.execute(
        sa.select(t.c.id, t.c.attempt, t.c.shard).where(t.c.member == member, t.c.state == TaskState.RUNNING)
    )
    return [(TaskId(task_id), attempt, shard) for task_id, attempt, shard in rows]


# Not "IS NOT NULL": a SQLite built without STAT4 reads the whole index for that, the NULLs too.
_CLAIMING = sa.select(tables.task.c.member).where(tables.task.c.member > "").distinct()


def claiming_members(conn: Connection) -> list[MemberId]:
    """Return all members that hold a claim now."""
    return [MemberId(member) for member in conn.execute(_CLAIMING).scalars()]


def begun_of_traversal(conn: Connection, traversal: TraversalId) -> list[Task]:
    """Return the tasks of a traversal that have begun and wait in the database: parked, or ready again.

    Tasks that wait for nested stacks whose deadlines are paused are left out: nothing runs there.
    """
    t = tables.task
    rows = conn.execute(
        sa.select(t)
        .where(
            t.c.traversal == traversal,
            t.c.state.in_([TaskState.PARKED, TaskState.READY]),
            t.c.attempt > 0,
            t.c.due_at.is_not(None) | sa.not_(WAITS_FOR_STACK),
        )
        .order_by(t.c.id)
    ).mappings()
    return [Task.of(dict(row)) for row in rows]


def supersede(conn: Connection, running: Iterable[Task], spared: Collection[TaskId]) -> None:
    """Store that the traversal of running tasks, whose rows the caller has locked, is superseded.

    :param spared: the tasks that the new traversal carries over.
    """
    t = tables.task
    by_standing: dict[Standing, list[TaskId]] = {Standing.CARRIED_OVER: [], Standing.SUPERSEDED: []}
    for task in running:
        by_standing[Standing.CARRIED_OVER if task.id in spared else Standing.SUPERSEDED].append(task.id)
    for standing, ids in by_standing.items():
        for chunk in chunks(ids):
            conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(standing=standing))


def inherit(conn: Connection, task_ids: Iterable[TaskId], number: TraversalNumber) -> None:
    """Assign carried-over tasks to a traversal, which counts them already."""
    t = tables.task
    for chunk in chunks(task_ids):
        values = {"finish_id": number, "standing": Standing.CARRIED_OVER}
        conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(**values))


def set_successors(conn: Connection, task_id: TaskId, successors: Sequence[TaskId]) -> None:
    """Replace the successors of a task whose row the caller has locked."""
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id == task_id).values(successors=list(successors)))


class Locked(typing.NamedTuple):
    """The ids of a task whose row this transaction has locked."""

    id: TaskId
    traversal: TraversalId
    stack_id: StackId


def lock(conn: Connection, which: sa.ColumnElement[bool], *, skip_locked: bool = False) -> list[Locked]:
    """Lock the tasks that meet a condition, in the order of their ids; return them.

    :param skip_locked: whether rows that other transactions hold are left out, instead of waited for.
    """
    t = tables.task
    query = sa.select(t.c.id, t.c.traversal, t.c.stack_id).where(which).order_by(t.c.id)
    return [Locked(*row) for row in conn.execute(query.with_for_update(skip_locked=skip_locked))]


def lock_many(conn: Connection, task_ids: Iterable[TaskId], state: TaskState) -> list[Locked]:
    """Lock those of the tasks that are in a state, in the order of their ids; return them."""
    t = tables.task
    return [
        row
        for chunk in chunks(sorted(task_ids))
        for row in lock(conn, sa.and_(t.c.id.in_(chunk), t.c.state == state))
    ]


def by_traversal(tasks: Iterable[Locked | Task]) -> ReadyTasks:
    """Return the ids of tasks by their traversals, as hints are sent."""
    ready = ReadyTasks()
    for task in tasks:
        ready.add(task.traversal, task.id)
    return ready


def find_unfinished(conn: Connection, task_id: TaskId) -> Locked | None:
    """Return the ids of a task that has not ended, without a lock; None: there is no such task."""
    t = tables.task.c
    query = sa.select(t.id, t.traversal, t.stack_id).where(t.id == task_id, t.state.not_in(sorted(FINAL)))
    row = conn.execute(query).first()
    return None if row is None else Locked(*row)


def lock_running(conn: Connection, stack_ids: Iterable[StackId]) -> list[Locked]:
    """Lock the running tasks of stacks, of any traversal, but those that run during any action."""
    t = tables.task.c
    of_action = t.kind.not_in(sorted(INDEPENDENT))
    return lock(conn, sa.and_(t.stack_id.in_(sorted(stack_ids)), t.state == TaskState.RUNNING, of_action))
