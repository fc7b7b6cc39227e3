"""A stack's clock, which stands while all that is unfinished is held at breakpoints, or is behind that.

While it stands the deadline is NULL and the seconds that were left are kept: no scan for deadlines finds the
stack, and no duty has to move anything.

A task that waits for a nested stack whose clock stands is behind a breakpoint, too.  So the transaction that
stops a child's clock looks at its parent's, up to the root; and the one that lets it go on lets theirs.  Both
go from the child to the parent, and who looks whether all children stand locks their rows: of one whose child
goes on at this moment and one who is about to stop the parent's clock, the second sees the first.
"""

import typing
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import traversals
from ..batches import BATCH, chunks
from ..ids import StackId, TaskId, TraversalId, TraversalNumber
from ..rows import Task, Traversal
from ..schema import tables
from ..states import ACTIVE, DeadlinePolicy, Standing, Status, TaskKind, TaskState

LOOK_AGAIN = 300.0
"""Seconds after which a task that waits for a nested stack looks at it even if nobody has woken it."""


def pause_deadline(conn: Connection, number: TraversalNumber, *, now: float) -> None:
    """Pause the stack's deadline if nothing goes on any more in the traversal but some task is held.

    Who takes the last active task away holds the traversal's row, so that of two who end tasks at once the
    second one sees the first.  Also tasks of older traversals count that still run: what waits for them goes
    on without anybody's doing.
    """
    s, found = tables.stack, traversals.get(conn, number)
    if found is None or not found.may_pause or found.deadline_policy == DeadlinePolicy.COUNTS:
        return
    if not _rests(conn, found):
        return
    done = conn.execute(
        sa.update(s)
        .where(
            s.c.id == found.stack_id,
            s.c.traversal == found.traversal,
            s.c.status == Status.IN_PROGRESS,
            # One that has passed strikes.
            s.c.deadline_at > now,
        )
        # Some databases see the new deadline in the second assignment: the order is of importance there.
        .ordered_values((s.c.remaining, s.c.deadline_at - now), (s.c.deadline_at, None))
    )
    if done.rowcount:
        pause_parents(conn, [task.id for task in _waiting_for(conn, found.stack_id)], now=now)


def pause_parents(conn: Connection, parked: Iterable[TaskId], *, now: float) -> None:
    """What these parents' tasks wait for stands now: nobody has to look at them, and their stacks' clocks may
    stand, too.  The caller holds the tasks."""
    t, numbers = tables.task, set[TraversalNumber]()
    for part in chunks(parked):
        # How long the child stands is no part of the resource's timeout.
        conn.execute(sa.update(t).where(t.c.id.in_(part)).values(due_at=None, expires_at=None))
        found = conn.execute(sa.select(t.c.finish_id).where(t.c.id.in_(part))).scalars()
        numbers |= {TraversalNumber(number) for number in found if number is not None}
    for number in sorted(numbers):
        traversals.note_paused_child(conn, number)
        pause_deadline(conn, number, now=now)


def _waiting_for(conn: Connection, stack_id: StackId) -> Sequence[typing.Any]:
    """The parked tasks that wait for a stack; their rows are locked."""
    t = tables.task
    return conn.execute(
        sa.select(t.c.id, t.c.finish_id, t.c.stack_id, t.c.traversal, t.c.timeout)
        .where(t.c.waits_on == f"{_CHILD}{stack_id}", t.c.state == TaskState.PARKED)
        .order_by(t.c.id)
        .with_for_update()
    ).all()


_CHILD = "stack:"


def _rests(conn: Connection, traversal: Traversal) -> bool:
    """Whether nothing goes on by itself in a traversal, nor in the nested stacks that it waits for; and
    something is held, there or here."""
    t, s = tables.task, tables.stack
    # With coalesce, for what is parked until a retry waits on nothing, and NOT NULL is NULL.
    for_child = sa.and_(t.c.state == TaskState.PARKED, sa.func.coalesce(t.c.waits_on, "").like(f"{_CHILD}%"))
    of_it = t.c.traversal == traversal.traversal
    active = sa.select(t.c.id).where(of_it, t.c.state.in_(sorted(ACTIVE)), sa.not_(for_child))
    # Nothing waits for a snapshot that is deleted beside the stack, but the stack's deletion takes it over.
    beside = sa.and_(t.c.kind == TaskKind.DELETE_SNAPSHOT, t.c.standing == Standing.OWN)
    running = sa.select(t.c.id).where(
        t.c.stack_id == traversal.stack_id, t.c.state == TaskState.RUNNING, sa.not_(beside)
    )
    if conn.execute(active.limit(1)).first() is not None:
        return False
    if conn.execute(running.limit(1)).first() is not None:
        return False
    theirs = s.c.id == sa.func.substr(t.c.waits_on, len(_CHILD) + 1)
    child = sa.select(s.c.id).join(t, theirs).where(of_it, for_child)
    # Most often there is one that goes on, and then none has to be locked.
    if conn.execute(child.where(s.c.remaining.is_(None)).limit(1)).first() is not None:
        return False
    children = conn.execute(child).scalars().all()
    for start in range(0, len(children), BATCH):
        part = sorted(children)[start : start + BATCH]
        locked = sa.select(s.c.remaining).where(s.c.id.in_(part)).order_by(s.c.id).with_for_update()
        if None in conn.execute(locked).scalars().all():
            return False
    return traversal.held_tasks > 0 or bool(children)


def resume_deadline(conn: Connection, stack_id: StackId, traversal: TraversalId, *, now: float) -> None:
    """Let a clock that stands go on with the time that was left, and those of the stacks around it."""
    s, t = tables.stack, tables.task
    done = conn.execute(
        sa.update(s)
        .where(s.c.id == stack_id, s.c.traversal == traversal, s.c.remaining.is_not(None))
        .ordered_values((s.c.deadline_at, s.c.remaining + now), (s.c.remaining, None))
    )
    for task in _waiting_for(conn, stack_id) if done.rowcount else ():
        expires_at = None if task.timeout is None else now + task.timeout
        due_at = now + (LOOK_AGAIN if task.timeout is None else min(LOOK_AGAIN, task.timeout))
        conn.execute(sa.update(t).where(t.c.id == task.id).values(due_at=due_at, expires_at=expires_at))
        resume_deadline(conn, StackId(task.stack_id), TraversalId(task.traversal), now=now)


def newer_traversals(conn: Connection, ended: Sequence[Task]) -> set[TraversalNumber]:
    """Return newer traversals of which tasks have waited for these, which ran for an older one.

    The ids of a plan are one block of which the traversal's is the last.
    """
    t = tables.task
    newer: Iterable[int] = (
        successor
        for task in ended
        if task.finish_id is not None
        for successor in task.successors
        if successor > task.finish_id
    )
    found: set[TraversalNumber] = set()
    for part in chunks(newer):
        rows = conn.execute(sa.select(t.c.finish_id).where(t.c.id.in_(part)).distinct()).scalars()
        found.update(TraversalNumber(number) for number in rows if number is not None)
    return found
