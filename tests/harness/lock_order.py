"""Watches the locks: who locks several rows of a table locks them in the order of their ids.

So two transactions that lock some of the same rows never wait for each other.  A statement that skips rows
that others hold waits for nobody.
"""

import typing
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql import operators, visitors


class LockWatch:
    """Collects the statements of this process that lock rows in no order, while it is entered.

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
        if not all(map(is_ordered, _queries(statement))):
            self.offences.add(" ".join(str(statement).split()))


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


def _is_of_one(query: sa.Select[typing.Any]) -> bool:
    """Return whether the query compares the whole primary key of a table with one value each."""
    whole = query.whereclause
    conditions = [] if whole is None else list(visitors.iterate(whole))
    compared = {
        side.key
        for condition in conditions
        if isinstance(condition, sa.BinaryExpression) and condition.operator is operators.eq
        for side in (condition.left, condition.right)
        if isinstance(side, sa.Column)
    }
    keys = [column.key for table in query.get_final_froms() for column in table.primary_key]
    return bool(keys) and compared.issuperset(keys)
