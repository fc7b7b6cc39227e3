"""Rows of traversals: how many of their tasks are open, why they fail, and how they end.

Order of locks: a transaction locks the tasks that have ended first, then their traversals in the order of
their ids, then the tasks' successors.  Whoever holds the row of a traversal is the only one that counts down
in it.  So of two transactions that end its last two tasks, the second one sees the count of the first; and no
two transactions lock successors in opposite orders.

Until the schema is contracted, a traversal may be stored in an older form: see legacy_finish_tasks.py.  So
each statement is tried on the table, then on the older form, then on the table again, because 0004_contract
may have moved the row between the first two tries.  Once the schema is contracted the first try succeeds.
"""

import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .ids import StackId, TraversalId, TraversalNumber
from .legacy_finish_tasks import FINISH_TASK, ROW, TRIED, Form
from .rows import Traversal
from .schema import revisions, tables
from .states import Status, TraversalState

KEPT = 60.0
"""Seconds for which a finished traversal and its tasks are kept, so that users can see why it ended."""
FORMS = (ROW, FINISH_TASK)
_NUMBER: sa.BindParameter[int] = sa.bindparam("number")


def insert(conn: Connection, traversal: Traversal) -> None:
    """Store a new traversal.

    The previous release reads only the older form, and runs until the schema is contracted.  A transaction
    that stores the older form keeps the schema from being contracted before it ends.  So 0004_contract sees
    all traversals in the older form, and none is added after it.
    """
    form = ROW if revisions.is_contracted(conn, hold=True) else FINISH_TASK
    conn.execute(sa.insert(form.table).values(**form.written(asdict(traversal)), **form.others))


def get(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """Return a traversal; None: it was purged."""
    return _first(conn, lambda form: _select(form).where(form.read["id"] == number))


def lock(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """Return a traversal and lock it: nobody else counts down in it until the transaction ends."""
    return _first(conn, _LOCK.__getitem__, {"number": number})


def get_running(conn: Connection, stack_id: StackId) -> Traversal | None:
    """Return the current traversal of a stack; None: the stack is not in progress."""
    s = tables.stack.c

    def query(form: Form) -> sa.Select[typing.Any]:
        present = sa.and_(form.read["traversal"] == s.traversal, form.which)
        return (
            _select(form)
            .select_from(tables.stack.join(form.table, present))
            .where(s.id == stack_id, s.status == Status.IN_PROGRESS)
        )

    return _first(conn, query)


def lock_failed(conn: Connection, numbers: Iterable[TraversalNumber]) -> set[TraversalNumber]:
    """Lock traversals, and return those in which a task has failed.

    A transaction that stores a failure holds the row while it cancels all unstarted tasks.  So a task that is
    requeued at that moment is either cancelled by it, or its transaction sees the failure here.
    """
    left, failed = set(numbers), set[TraversalNumber]()
    for form in TRIED:
        if not left:
            break
        number = form.read["id"]
        query = sa.select(number, form.read["failure"].is_not(None)).where(
            number.in_(sorted(left)), form.which
        )
        for found, has_failed in conn.execute(query.order_by(number).with_for_update()):
            left.discard(found)
            failed |= {found} if has_failed else set()
    return failed


def count_down(
    conn: Connection,
    number: TraversalNumber,
    tasks: int,
    *,
    failure: str | None = None,
    aborted: bool = False,
) -> None:
    """Reduce the open tasks of a traversal by those that became final; this locks its row.

    :param failure: why one of them failed; the row keeps the first cause only.
    :param aborted: whether the cause is a breakpoint that ends the action.
    """
    form = _change(conn, _COUNT_DOWN.__getitem__, {"number": number, "tasks": tasks})
    if failure is not None and form is not None:
        new = {"failure": failure, "aborted": aborted}
        first = _update(form, **new).where(form.read["failure"].is_(None))
        conn.execute(first, {"number": number})


def count_cancelled(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Reduce the open tasks by those that a failure has cancelled; after that none is held."""
    _change(
        conn,
        lambda form: _update(form, open_tasks=form.read["open_tasks"] - tasks, held_tasks=0),
        {"number": number},
    )


def count_up(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Increase the open tasks of a traversal."""
    count_down(conn, number, -tasks)


def count_held(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Increase, or with a negative number reduce, the held tasks of a traversal."""
    _change(
        conn,
        lambda form: _update(form, held_tasks=form.read["held_tasks"] + tasks),
        {"number": number},
    )


def note_paused_child(conn: Connection, number: TraversalNumber) -> None:
    """Store that the deadline of a nested stack is paused for which a task of the traversal waits."""
    _change(conn, lambda form: _update(form, waits_for_paused_children=True), {"number": number})


def end(conn: Connection, number: TraversalNumber, *, now: float) -> None:
    """End a traversal whose row the caller holds; the purge deletes it after a while."""
    values = {"state": TraversalState.DONE, "open_tasks": 0, "due_at": now + KEPT}
    _change(conn, lambda form: _update(form, **values), {"number": number})


def close(conn: Connection, stack_ids: Collection[StackId], *, now: float) -> None:
    """Cancel the running traversals of stacks whose actions the caller ends.

    A traversal that deletes a single snapshot continues: it runs beside the stack's own.
    """
    values = {"state": TraversalState.CANCELLED, "due_at": now + KEPT}
    for form in _forms(conn):
        conn.execute(
            sa.update(form.table)
            .where(
                form.read["stack_id"].in_(sorted(stack_ids)),
                form.which,
                form.read["state"] == TraversalState.RUNNING,
                form.read["traversal"].not_in(_deleting_snapshots(stack_ids)),
            )
            .values(**form.written(values))
        )


def _deleting_snapshots(stack_ids: Collection[StackId]) -> sa.Select[typing.Any]:
    s = tables.snapshot.c
    return sa.select(s.traversal).where(s.stack_id.in_(sorted(stack_ids)), s.status == Status.IN_PROGRESS)


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[Traversal]:
    """Return the traversals that the purge may delete, the oldest first, by the index on due_at.

    :param after: (due_at, id) of the last one of the page before.
    """
    last_due, last_id = after
    found: list[Traversal] = []
    for form in FORMS[:1] if revisions.is_contracted(conn) else FORMS:
        number, due_at = form.read["id"], form.read["due_at"]
        query = _select(form).where(
            due_at <= now, due_at >= last_due, (due_at > last_due) | (number > last_id)
        )
        rows = conn.execute(query.order_by(due_at, number).limit(limit)).mappings()
        found += [Traversal.of(dict(row)) for row in rows]
    return sorted(found, key=lambda one: (one.due_at or 0.0, one.id))[:limit]


def keep(conn: Connection, traversal: Traversal) -> None:
    """Keep a finished traversal until its `due_at`, also where the purge has deleted it already."""
    locked = _lock_all(conn, traversal.traversal)
    for form, numbers in locked:
        mine = form.read["id"].in_(numbers)
        conn.execute(sa.update(form.table).where(mine).values(due_at=traversal.due_at))
    if not locked:
        insert(conn, traversal)


def purge(conn: Connection, traversal: TraversalId, *, again: float, has_tasks: Callable[[], bool]) -> int:
    """Delete a finished traversal; return the number of rows.

    :param again: seconds after which the purge tries again if there are tasks.
    :param has_tasks: returns whether the traversal has tasks.  It is called while the row is locked, as it is
        when a task is added beside a finished traversal: see `keep`.
    """
    locked = _lock_all(conn, traversal)
    kept, deleted = locked and has_tasks(), 0
    for form, numbers in locked:
        mine = form.read["id"].in_(numbers)
        if kept:
            conn.execute(sa.update(form.table).where(mine).values(due_at=form.read["due_at"] + again))
        else:
            deleted += conn.execute(sa.delete(form.table).where(mine)).rowcount
    return deleted


def _lock_all(conn: Connection, traversal: TraversalId) -> list[tuple[Form, list[int]]]:
    """Lock the rows of a traversal; return their keys with their forms."""
    found: list[tuple[Form, list[int]]] = []
    for form in _forms(conn):
        number = form.read["id"]
        mine = sa.and_(form.read["traversal"] == traversal, form.which)
        query = sa.select(number).where(mine).order_by(number).with_for_update()
        numbers = list(conn.execute(query).scalars())
        if numbers and (form, numbers) not in found:
            found.append((form, numbers))
    return found


def _forms(conn: Connection) -> Sequence[Form]:
    """Return the forms in which a statement on several traversals must be tried."""
    return FORMS[:1] if revisions.is_contracted(conn) else TRIED


def _select(form: Form) -> sa.Select[typing.Any]:
    return sa.select(*(value.label(name) for name, value in form.read.items())).where(form.which)


def _update(form: Form, **values: typing.Any) -> sa.Update:
    return sa.update(form.table).where(form.read["id"] == _NUMBER, form.which).values(**form.written(values))


def _change(
    conn: Connection, statement: Callable[[Form], sa.Update], parameters: dict[str, typing.Any]
) -> Form | None:
    """Change one traversal; return its form, which stays so while this transaction holds the row."""
    for form in TRIED:
        if conn.execute(statement(form), parameters).rowcount:
            return form
    return None


def _first(
    conn: Connection,
    query: Callable[[Form], sa.Select[typing.Any]],
    parameters: dict[str, typing.Any] | None = None,
) -> Traversal | None:
    for form in TRIED:
        row = conn.execute(query(form), parameters or {}).mappings().first()
        if row is not None:
            return Traversal.of(dict(row))
    return None


# Built once: building one takes longer than SQLite takes to run it.
_LOCK = {form: _select(form).where(form.read["id"] == _NUMBER).with_for_update() for form in FORMS}
_COUNT_DOWN = {
    form: _update(form, open_tasks=form.read["open_tasks"] - sa.bindparam("tasks")) for form in FORMS
}
