"""Watches the locks: who locks several rows of a table names them, and locks them in the order of their ids.

So two transactions that lock some of the same rows never wait for each other.  A statement that skips rows
that others hold waits for nobody.  And none locks all rows of a state, those of other stacks too.
"""

import contextlib
import typing
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql import operators, visitors

STATES = {"state", "status", "kind", "deleted_at"}
"""Columns whose values many rows share."""


class LockWatch:
    """Collects the statements of this process that lock rows in no order, or too many, while it is entered.

    :ivar offences: each as its text.
    """

    def __init__(self) -> None:
        self.offences: set[str] = set()

    def __enter__(self) -> typing.Self:
        sa.event.listen(Engine, "before_execute", self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(Engine, "before_execute", self._look)

    def _look(self, conn: Connection, statement: sa.ClauseElement, *_: object) -> None:
        if not all(is_ordered(query) and is_selective(query) for query in _queries(statement)):
            self.offences.add(" ".join(str(statement).split()))


@contextlib.contextmanager
def locks_taken() -> Iterator[list[str]]:
    """Collect the tables whose rows the process's statements lock, in their order, while it is entered.

    A table of which locked rows are skipped, instead of waited for, is marked; so is one that others may lock
    in the same way.
    """
    taken: list[str] = []

    def look(conn: Connection, statement: sa.ClauseElement, *_: object) -> None:
        for query in {id(each): each for each in _queries(statement)}.values():
            lock = query._for_update_arg
            if lock is not None:
                names = {each.name for each in visitors.iterate(query) if isinstance(each, sa.Table)}
                marks = " shared" * bool(lock.read) + " unless locked" * bool(lock.skip_locked)
                taken.append(" ".join(sorted(names)) + marks)

    sa.event.listen(Engine, "before_execute", look)
    try:
        yield taken
    finally:
        sa.event.remove(Engine, "before_execute", look)


def _queries(statement: sa.ClauseElement) -> Iterator[sa.Select[typing.Any]]:
    """Yield the queries in a statement, also those whose columns alone it names."""
    for each in visitors.iterate(statement):
        table = each.table if isinstance(each, sa.ColumnClause) else None
        query = table.element if isinstance(table, sa.Subquery) else each
        if isinstance(query, sa.Select):
            yield query


def is_ordered(query: sa.Select[typing.Any]) -> bool:
    """Return whether a query that locks rows says in which order, where there may be several."""
    lock = query._for_update_arg
    if lock is None or lock.skip_locked:
        return True
    return bool(query._order_by_clauses) or _is_of_one(query)


def is_selective(query: sa.Select[typing.Any]) -> bool:
    """Return whether a query that locks rows says more of them than their states."""
    if query._for_update_arg is None:
        return True
    whole = query.whereclause
    columns = (
        [] if whole is None else [each for each in visitors.iterate(whole) if isinstance(each, sa.Column)]
    )
    return any(column.key not in STATES for column in columns)


def _is_of_one(query: sa.Select[typing.Any]) -> bool:
    """Return whether the query compares the whole primary key of a table with one value each.

    What another query in it compares, such as the levels of a tree, is another thing.
    """
    whole = query.whereclause
    conditions = [] if whole is None else list(visitors.iterate(whole))
    tables = query.get_final_froms()
    compared = {
        side.key
        for condition in conditions
        if isinstance(condition, sa.BinaryExpression) and condition.operator is operators.eq
        for side in (condition.left, condition.right)
        if isinstance(side, sa.Column) and side.table in tables
    }
    keys = [column.key for table in tables for column in table.primary_key]
    return bool(keys) and compared.issuperset(keys)
