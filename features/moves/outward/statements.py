"""Statements on single rows of Heat's database, which count what they change."""

import typing
from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

IDS = 500
"""Ids in one statement."""
Columns = Mapping[str, typing.Any]


class HeatRows:
    """The rows of Heat's database within one transaction.

    :param now: seconds since the epoch: the creation of rows that have no other.
    :ivar changes: number of rows that were inserted, changed or deleted.
    """

    def __init__(self, conn: Connection, now: float) -> None:
        self.changes = 0
        self._conn = conn
        self._now = now

    def select(self, query: sa.Select[typing.Any]) -> list[typing.Any]:
        """Return the values of the only column of a query."""
        return list(self._conn.execute(query).scalars())

    def select_all(self, query: sa.Select[typing.Any]) -> typing.Sequence[typing.Any]:
        """Return the rows of a query."""
        return self._conn.execute(query).all()

    def first(self, query: sa.Select[typing.Any]) -> Columns:
        """Return the first row of a query; empty: there is none."""
        return dict(self._conn.execute(query).mappings().first() or {})

    def insert(self, table: sa.Table, columns: Columns) -> int:
        """Insert a row whose id is a number that the database gives; return the number."""
        self.changes += 1
        values = {"created_at": self._now, **columns}
        [number] = self._conn.execute(sa.insert(table).values(values)).inserted_primary_key or (0,)
        return int(number)

    def put(self, table: sa.Table, key: str, columns: Columns) -> None:
        """Insert a row, or change the columns of the one with this id that differ."""
        if not self._change(table, key, columns):
            self.changes += 1
            self._conn.execute(sa.insert(table).values({"id": key, "created_at": self._now, **columns}))

    def update(self, table: sa.Table, key: str | int, columns: Columns) -> None:
        """Change the columns of a row that differ; one that does not exist is ignored."""
        self._change(table, key, columns)

    def delete(self, table: sa.Table, column: str, values: Collection[typing.Any]) -> None:
        """Delete the rows in which the column has one of these values."""
        # In one order, so that two transactions never wait for each other.
        ordered = sorted(values)
        for start in range(0, len(ordered), IDS):
            chunk = ordered[start : start + IDS]
            result = self._conn.execute(sa.delete(table).where(table.c[column].in_(chunk)))
            self.changes += result.rowcount

    def _change(self, table: sa.Table, key: str | int, columns: Columns) -> bool:
        """Change the columns of a row that differ; return whether the row exists."""
        labelled = [table.c[name].label(name) for name in columns]
        stored = self.first(sa.select(table.c.id.label("id"), *labelled).where(table.c.id == key))
        if not stored:
            return False
        changed = {name: value for name, value in columns.items() if _plain(stored[name]) != _plain(value)}
        # Equal columns are not written: the number of changes tells a run that has moved nothing.
        if changed:
            self.changes += 1
            self._conn.execute(sa.update(table).where(table.c.id == key).values(changed))
        return True


def _plain(value: object) -> object:
    """Return a value as it compares: of instants Heat stores whole seconds."""
    return int(value) if isinstance(value, float) else value
