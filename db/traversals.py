"""Rows of traversals: how many of its tasks are open, why it fails, and how it ends.

The order of locks is that of `work/commit.py`: a traversal's row comes after its tasks that have ended, and
before their successors.  While the row is held nobody else counts tasks down in this traversal: so of two who
end its last tasks at once, the second one sees what the first one did, and successors are not locked in
opposite orders.  Several traversals are locked in the order of their ids, as all rows are.

Until the schema is contracted, a traversal may be stored in an older form, see `legacy_finish_tasks.py`.  So
each statement is tried on the table first, then on the older form, then on the table once more: 0004_contract
may have moved it between the first two.  Afterwards the first one finds it.
"""

import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import snapshots
from .ids import StackId, TraversalId, TraversalNumber
from .legacy_finish_tasks import FINISH_TASK, ROW, TRIED, Form
from .rows import Traversal
from .schema import revisions, tables
from .states import Status, TraversalState

KEPT = 60.0
"""Seconds that a finished traversal is kept with its tasks, for those who look why it ended so."""
FORMS = (ROW, FINISH_TASK)
_NUMBER: sa.BindParameter[int] = sa.bindparam("number")


def insert(conn: Connection, traversal: Traversal) -> None:
    """Store a new traversal.

    Code of the release before knows only the older form, and runs until the schema is contracted.  Where the
    older form is taken, the schema is not contracted before this transaction has ended: so none in that form
    is left then.
    """
    form = ROW if revisions.is_contracted(conn, hold=True) else FINISH_TASK
    conn.execute(sa.insert(form.table).values(**form.written(asdict(traversal)), **form.others))


def get(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """Return a traversal; None: it is not stored any more."""
    return _first(conn, lambda form: _select(form).where(form.read["id"] == number))


def lock(conn: Connection, number: TraversalNumber) -> Traversal | None:
    """As get, and nobody else changes it, or counts its tasks down, until the transaction ends."""
    return _first(conn, _LOCK.__getitem__, {"number": number})


def get_running(conn: Connection, stack_id: StackId) -> Traversal | None:
    """Return the present traversal of a stack that is in progress."""
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
    """Return those of the traversals in which a task has failed; all of them are locked.

    Who notes a failure, and cancels what has not started, holds the row: so who puts a task back that would
    wait in the traversal either sees the failure here, or has its task cancelled by them.
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
    """Take tasks that are final off the open ones of a traversal, whose row is locked by this.

    :param failure: why one of them failed; only the first one is kept.
    :param aborted: a breakpoint was the cause.
    """
    form = _change(conn, _COUNT_DOWN.__getitem__, {"number": number, "tasks": tasks})
    if failure is not None and form is not None:
        new = {"failure": failure, "aborted": aborted}
        first = _update(form, **new).where(form.read["failure"].is_(None))
        conn.execute(first, {"number": number})


def count_cancelled(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Take the tasks off that were cancelled because another one has failed: none is held any more."""
    _change(
        conn,
        lambda form: _update(form, open_tasks=form.read["open_tasks"] - tasks, held_tasks=0),
        {"number": number},
    )


def count_up(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Add tasks to the open ones of a traversal."""
    count_down(conn, number, -tasks)


def count_held(conn: Connection, number: TraversalNumber, tasks: int) -> None:
    """Note that so many tasks more, or less, are held."""
    _change(
        conn,
        lambda form: _update(form, held_tasks=form.read["held_tasks"] + tasks),
        {"number": number},
    )


def note_paused_child(conn: Connection, number: TraversalNumber) -> None:
    """Note that the deadline of a nested stack was paused that a task of the traversal waits for."""
    _change(conn, lambda form: _update(form, waits_for_paused_children=True), {"number": number})


def end(conn: Connection, number: TraversalNumber, *, now: float) -> None:
    """Store that a traversal, whose row is locked, is done; it stays a while, until the purge takes it."""
    values = {"state": TraversalState.DONE, "open_tasks": 0, "due_at": now + KEPT}
    _change(conn, lambda form: _update(form, **values), {"number": number})


def close(conn: Connection, stack_ids: Collection[StackId], *, now: float) -> None:
    """Cancel the traversals that end nothing any more, for one who ends what the stacks do; the deletion of a
    single snapshot goes on beside that."""
    values = {"state": TraversalState.CANCELLED, "due_at": now + KEPT}
    for form in _forms(conn):
        conn.execute(
            sa.update(form.table)
            .where(
                form.read["stack_id"].in_(sorted(stack_ids)),
                form.which,
                form.read["state"] == TraversalState.RUNNING,
                form.read["traversal"].not_in(snapshots.being_deleted(stack_ids)),
            )
            .values(**form.written(values))
        )


def due(conn: Connection, now: float, *, limit: int, after: tuple[float, int] = (0.0, 0)) -> list[Traversal]:
    """Return the traversals that the purge may take, the oldest first, by the index on due_at.

    :param after: (due_at, id) of the last one seen, to read on.
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
    """Let the purge take a finished traversal when `due_at` says so; one that it has taken is stored anew."""
    locked = _lock_all(conn, traversal.traversal)
    for form, numbers in locked:
        mine = form.read["id"].in_(numbers)
        conn.execute(sa.update(form.table).where(mine).values(due_at=traversal.due_at))
    if not locked:
        insert(conn, traversal)


def purge(conn: Connection, traversal: TraversalId, *, again: float, has_tasks: Callable[[], bool]) -> int:
    """Delete a finished traversal; return how many rows.

    :param again: seconds by which this is put off if there are tasks.
    :param has_tasks: returns whether some of its tasks are left.  It is asked while the row is locked: who
        adds a task beside a finished traversal locks the row, too.
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
    """Lock what is stored of a traversal; return the rows' keys, by their forms."""
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
    """Return the forms in which a statement on several traversals has to be tried."""
    return FORMS[:1] if revisions.is_contracted(conn) else TRIED


def _select(form: Form) -> sa.Select[typing.Any]:
    return sa.select(*(value.label(name) for name, value in form.read.items())).where(form.which)


def _update(form: Form, **values: typing.Any) -> sa.Update:
    return sa.update(form.table).where(form.read["id"] == _NUMBER, form.which).values(**form.written(values))


def _change(
    conn: Connection, statement: Callable[[Form], sa.Update], parameters: dict[str, typing.Any]
) -> Form | None:
    """Change one traversal; return the form in which it was found, and is while this transaction holds it."""
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
