"""One statement returns what becomes due in the next seconds, of every kind, on each server."""

import typing

import sqlalchemy as sa
from services.db.rows import NOW, a_stack
from stoker.db.engine import Database
from stoker.db.event_sinks import LINGER
from stoker.db.ids import MemberId
from stoker.db.queries.due_soon import ANY_SHARD, Due, DueSoon, due_before
from stoker.db.schema import tables

UNTIL = NOW + 10.0


def insert(database: Database, table: sa.Table, **values: typing.Any) -> None:
    """Insert a row with values for the columns that a row must have."""
    for column in table.columns:
        if not column.nullable and column.default is None and column.key not in values:
            values[column.key] = 7 if column.type.python_type in (int, float) else "7"
    database.write(lambda conn: conn.execute(sa.insert(table).values(**values)))


def insert_stack(database: Database, **values: typing.Any) -> None:
    row = {**vars(a_stack(**values))}
    del row["tags"]
    database.write(lambda conn: conn.execute(sa.insert(tables.stack).values(**row)))


def soon(database: Database, limit: int = 10) -> list[DueSoon]:
    rows = database.read(lambda conn: list(due_before(conn, UNTIL, limit=limit)))
    return sorted(rows, key=lambda row: (row.kind, row.at))


def test_each_kind_of_row_is_found_and_what_is_due_later_is_not(database: Database) -> None:
    for number, at in enumerate((UNTIL, UNTIL + 1.0)):
        insert(database, tables.task, id=1 + number, due_at=at, shard=1)
        insert_stack(database, id=f"d{number}", name=f"d{number}", deadline_at=at, shard=2)
        insert_stack(database, id=f"r{number}", name=f"r{number}", rollback_at=at, shard=3)
        insert(database, tables.traversal, id=1 + number, due_at=at, shard=4)
        insert(database, tables.event_sink, id=f"s{number}", closed_at=at - LINGER, shard=5)
        insert(database, tables.credential, root_id=f"c{number}", unused_at=at, body={})
        insert(database, tables.task, id=11 + number, member="a/1", shard=6)
        insert(database, tables.event_delivery, id=1 + number, body={})
    assert soon(database) == [
        DueSoon(Due.CLAIM, 0.0, ANY_SHARD, MemberId("a/1")),
        DueSoon(Due.CREDENTIAL, UNTIL, ANY_SHARD, None),
        DueSoon(Due.DELIVERY, 0.0, ANY_SHARD, None),
        DueSoon(Due.ROLLBACK, UNTIL, 3, None),
        DueSoon(Due.SINK, UNTIL, 5, None),
        DueSoon(Due.STACK, UNTIL, 2, None),
        DueSoon(Due.TASK, UNTIL, 1, None),
        DueSoon(Due.TRAVERSAL, UNTIL, 4, None),
    ]


def test_of_many_rows_the_first_are_found(database: Database) -> None:
    for number in range(5):
        insert(database, tables.task, id=1 + number, due_at=NOW - number, shard=number)
    assert [row.at for row in soon(database, limit=2)] == [NOW - 4, NOW - 3]


def test_an_idle_database_has_nothing(database: Database) -> None:
    insert(database, tables.task)
    insert_stack(database)
    insert(database, tables.traversal)
    insert(database, tables.event_sink)
    insert(database, tables.credential, body={})
    assert soon(database) == []
