"""Rows of traversals: how many of their tasks are open, why they fail, and how they end.

Order of locks: a transaction locks the tasks that have ended first, then their successors, both in the order
of their ids, and the traversals last.  It does so as late as it can, because all conductors that work in a
traversal wait for its one row.  Whoever holds that row is the only one that counts down in the traversal.  So
of two transactions that end its last two tasks, the second one sees the count of the first.
"""

import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import bulk
from .bulk import OneOf, Write, Writes
from .ids import StackId, TraversalId, TraversalNumber
from .rows import FailureCause, Resource, Traversal
from .schema import tables
from .states import Status, TraversalState

KEPT = 60.0
"""Seconds for which a finished traversal and its tasks are kept, so that users can see why it ended."""
_T = tables.traversal.c
_NUMBER: sa.BindParameter[int] = sa.bindparam("number")


def insert(conn: Connection, traversal: Traversal) -> None:
    """Store a new traversal; its number is the transaction's own."""
    bulk.insert_new(conn, tables.traversal, [asdict(traversal)])


def insert_with(conn: Connection, rows: bulk.NewRows) -> None:
    """Store a new traversal with what begins with it: the rows of `new_rows`."""
    bulk.insert_new_together(conn, rows)


def new_rows(traversal: Traversal, resources: Iterable[Resource], tasks: Iterable[bulk.Row]) -> bulk.NewRows:
    """Return the rows of a new traversal, with its new resources and the rows of its tasks.

    Their ids are the transaction's own.
    """
    return {
        tables.resource: map(vars, resources),
        tables.task: tasks,
        tables.traversal: [asdict(traversal)],
    }


def get(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """Return a traversal; None: it was purged."""
    return _one(conn, _GET, {"number": number})


def lock(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """Return a traversal and lock it: nobody else counts down in it until the transaction ends."""
    return _one(conn, _LOCK, {"number": number})


def get_running(conn: Connection, stack_id: StackId) -> Traversal | None:
    """Return the current traversal of a stack; None: the stack is not in progress."""
    s = tables.stack.c
    present = tables.stack.join(tables.traversal, _T.traversal == s.traversal)
    query = sa.select(tables.traversal).select_from(present)
    return _one(conn, query.where(s.id == stack_id, s.status == Status.IN_PROGRESS), {})


def lock_failed(
    conn: Connection, numbers: Iterable[TraversalNumber], shared: Collection[TraversalNumber] = ()
) -> set[TraversalNumber]:
    """Lock traversals, and return those in which a task has failed.

    A transaction that stores a failure holds the row while it cancels all unstarted tasks.  So a task that is
    requeued at that moment is either cancelled by it, or its transaction sees the failure here.

    :param shared: those of them that this transaction will not change: others may lock them in this way, too.
    """
    failed: set[TraversalNumber] = set()
    requested = set(numbers)
    for ids, query in ((requested - set(shared), _FAILED_LOCKED), (requested & set(shared), _FAILED_SHARED)):
        rows = conn.execute(query, {"ids": sorted(ids)}) if ids else ()
        failed.update(number for number, has_failed in rows if has_failed)
    return failed


def count_down(
    conn: Connection, number: TraversalNumber, tasks: int, writes: Writes | None = None
) -> Traversal | None:
    """Reduce the open tasks of a traversal by those that became final; this locks its row.

    :param writes: writes that were put off, to be run with it; None: there are none.
    :returns: the traversal as it is then; None: it was purged.
    """
    writes = [] if writes is None else writes
    returns = conn.dialect.update_returning  # MariaDB does not.
    statement = _COUNT_DOWN_RETURNING if returns else _COUNT_DOWN
    writes.append(Write(statement, {"number": number, "tasks": tasks}))
    result = bulk.run(conn, writes)
    if result is None or not returns:
        return get(conn, number)
    row = result.mappings().first()
    return None if row is None else Traversal.of(dict(row))


def count_down_each(
    conn: Connection, numbers: Mapping[TraversalNumber, int], writes: Writes
) -> dict[TraversalNumber, Traversal]:
    """Reduce the open tasks of traversals, and lock their rows in the order of their numbers.

    :param numbers: by how much each is reduced; 0 only locks it.
    :param writes: writes that were put off, to be run first, or with it.
    :returns: those that exist, as they are then.
    """
    if len(numbers) == 1:
        [(number, tasks)] = numbers.items()
        if tasks:
            row = count_down(conn, number, tasks, writes)
            return {} if row is None else {number: row}
    bulk.run(conn, writes)
    rows = conn.execute(_LOCK_EACH, {"ids": sorted(numbers)}).mappings() if numbers else ()
    locked = [Traversal.of(dict(row)) for row in rows]
    reduced = [replace(row, open_tasks=row.open_tasks - numbers[row.id]) for row in locked]
    changed = [row for row in reduced if numbers[row.id]]
    if changed:
        bulk.update(conn, tables.traversal, [{"id": row.id, "open_tasks": row.open_tasks} for row in changed])
    return {row.id: row for row in reduced}


def fail(
    conn: Connection, number: TraversalNumber, failure: str, cause: FailureCause | None, *, aborted: bool
) -> None:
    """Lock a traversal, and store why one of its tasks failed; the row keeps the first failure only.

    :param aborted: whether the cause is a breakpoint that ends the action.
    """
    traversal = lock(conn, number)
    if traversal is not None and traversal.failure is None:
        stored = asdict(cause or FailureCause(failure))
        statement = _update(failure=failure, failure_cause=stored, aborted=aborted)
        conn.execute(statement, {"number": number})


def count_cancelled(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Reduce the open tasks by those that a failure has cancelled; after that none is held."""
    conn.execute(_update(open_tasks=_T.open_tasks - tasks, held_tasks=0), {"number": number})


def count_up(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Increase the open tasks of a traversal."""
    count_down(conn, number, -tasks)


def count_held(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Increase, or with a negative number reduce, the held tasks of a traversal."""
    conn.execute(_update(held_tasks=_T.held_tasks + tasks), {"number": number})


def note_paused_child(conn: Connection, number: TraversalNumber) -> None:
    """Store that the deadline of a nested stack is paused for which a task of the traversal waits."""
    conn.execute(_update(waits_for_paused_children=True), {"number": number})


def end(conn: Connection, numbers: Collection[TraversalNumber], *, now: float) -> None:
    """End traversals whose rows the caller holds; the purge deletes them after a while."""
    conn.execute(_END, {"ids": sorted(numbers), "due": now + KEPT})


def close(conn: Connection, stack_ids: Collection[StackId], *, now: float) -> None:
    """Cancel the running traversals of stacks whose actions the caller ends.

    A traversal that deletes a single snapshot continues: it runs during any action of the stack.
    """
    values = {"state": TraversalState.CANCELLED, "due_at": now + KEPT}
    conn.execute(
        sa.update(tables.traversal)
        .where(
            _T.stack_id.in_(sorted(stack_ids)),
            _T.state == TraversalState.RUNNING,
            _T.traversal.not_in(_deleting_snapshots(stack_ids)),
        )
        .values(**values)
    )


def _deleting_snapshots(stack_ids: Collection[StackId]) -> sa.Select[typing.Any]:
    s = tables.snapshot.c
    return sa.select(s.traversal).where(s.stack_id.in_(sorted(stack_ids)), s.status == Status.IN_PROGRESS)


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[Traversal]:
    """Return the traversals that the purge may delete, the oldest first, by the index on due_at.

    :param after: (due_at, id) of the last one of the page before.
    """
    last_due, last_id = after
    later = (_T.due_at > last_due) | (_T.id > last_id)
    query = sa.select(tables.traversal).where(_T.due_at <= now, _T.due_at >= last_due, later)
    rows = conn.execute(query.order_by(_T.due_at, _T.id).limit(limit)).mappings()
    return [Traversal.of(dict(row)) for row in rows]


def keep(conn: Connection, traversal: Traversal) -> None:
    """Keep a finished traversal until its `due_at`, also where the purge has deleted it already."""
    numbers = _lock_all(conn, traversal.traversal)
    if numbers:
        statement = sa.update(tables.traversal).where(_T.id.in_(numbers))
        conn.execute(statement.values(due_at=traversal.due_at))
    else:
        insert(conn, traversal)


def purge(conn: Connection, traversal: TraversalId, *, again: float, has_tasks: Callable[[], bool]) -> int:
    """Delete a finished traversal; return the number of rows.

    :param again: seconds after which the purge tries again if there are tasks.
    :param has_tasks: returns whether the traversal has tasks.  It is called while the row is locked, as it is
        when a task is added beside a finished traversal: see `keep`.
    """
    numbers = _lock_all(conn, traversal)
    condition = _T.id.in_(numbers)
    if numbers and has_tasks():
        conn.execute(sa.update(tables.traversal).where(condition).values(due_at=_T.due_at + again))
        return 0
    return conn.execute(sa.delete(tables.traversal).where(condition)).rowcount if numbers else 0


def _lock_all(conn: Connection, traversal: TraversalId) -> list[int]:
    """Lock the rows of a traversal; return their keys."""
    query = sa.select(_T.id).where(_T.traversal == traversal).order_by(_T.id)
    return list(conn.execute(query.with_for_update()).scalars())


def _update(**values: typing.Any) -> sa.Update:
    return sa.update(tables.traversal).where(_T.id == _NUMBER).values(**values)


def _one(conn: Connection, query: sa.Executable, parameters: dict[str, typing.Any]) -> Traversal | None:
    row = conn.execute(query, parameters).mappings().first()
    return None if row is None else Traversal.of(dict(row))


# Built once: building one takes longer than SQLite takes to run it.
_GET = sa.select(tables.traversal).where(_T.id == _NUMBER)
_LOCK = _GET.with_for_update()
_COUNT_DOWN = _update(open_tasks=_T.open_tasks - sa.bindparam("tasks"))
_FAILED = sa.select(_T.id, _T.failure.is_not(None)).where(OneOf(_T.id)).order_by(_T.id)
_FAILED_LOCKED = _FAILED.with_for_update()
_FAILED_SHARED = _FAILED.with_for_update(read=True)
_LOCK_EACH = sa.select(tables.traversal).where(OneOf(_T.id)).order_by(_T.id).with_for_update()
_END = (
    sa.update(tables.traversal)
    .where(OneOf(_T.id))
    .values(state=TraversalState.DONE, open_tasks=0, due_at=sa.bindparam("due"))
)
_COUNT_DOWN_RETURNING = _COUNT_DOWN.returning(tables.traversal)
