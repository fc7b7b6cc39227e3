"""Statements for many rows, beside the plain form of each."""

import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import a_resource, a_stack, store
from stoker.db import bulk, resources
from stoker.db.engine import Database
from stoker.db.rows import Resource, Stack
from stoker.db.schema import tables

VALUES: list[dict[str, typing.Any]] = [
    {"reason": "", "reference_id": None, "cancelled": False, "updated_at": 0.1, "replaces": None},
    {"reason": 'it\'s {a,b} "c" \\ %s :x', "reference_id": {}, "updated_at": 1e10 / 3, "replaces": 2**53 + 1},
    {"reason": "NULL", "reference_id": [[], [None]], "cancelled": True, "updated_at": 1.0, "replaces": 1},
    {"reason": "ü\U0001f600\n", "reference_id": "x" * 100_000, "updated_at": -1.5, "replaces": None},
    {"reason": "null", "reference_id": 0, "metadata": {"": "NULL"}, "updated_at": 1e-9, "replaces": 0},
]
"""Values that a dialect's array, list or literal may take for another one."""


@pytest.fixture
def stack(database: Database) -> Stack:
    database.write(lambda conn: conn.execute(sa.delete(tables.resource)))
    return store(database, a_stack())


FIRST_ID = 2**53
"""Beyond what a JSON number keeps in some languages."""


def some_resources(stack: Stack) -> list[Resource]:
    """Resources with all of the values, in the order of their ids, twice."""
    return [
        a_resource(stack.id, FIRST_ID + number, **values)
        for number, values in enumerate([*VALUES, *VALUES[::-1]])
    ]


def test_inserted_rows_are_those_of_plain_inserts(database: Database, stack: Stack) -> None:
    rows = some_resources(stack)
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in rows]))
    assert database.read(lambda conn: resources.of_stack(conn, stack.id)) == rows
    database.write(lambda conn: conn.execute(sa.delete(tables.resource)))
    for row in rows:
        database.write(lambda conn, row=row: conn.execute(sa.insert(tables.resource).values(vars(row))))
    assert database.read(lambda conn: resources.of_stack(conn, stack.id)) == rows


def test_updated_rows_are_those_of_plain_updates_and_others_stay(database: Database, stack: Stack) -> None:
    old = [replace(row, **VALUES[1]) for row in some_resources(stack)]
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in old]))
    names = ("reason", "reference_id", "metadata", "cancelled", "updated_at", "replaces")
    new = [
        replace(row, **{name: getattr(other, name) for name in names})
        for row, other in zip(old, some_resources(stack), strict=True)
    ]
    changes = [{name: getattr(row, name) for name in ("id", *names)} for row in new]
    database.write(lambda conn: bulk.update(conn, tables.resource, [*reversed(changes[1:-1])]))
    rows = database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert rows == [old[0], *new[1:-1], old[-1]]


@pytest.mark.parametrize("count", [0, 1, bulk.MARIADB_BATCH, bulk.MARIADB_BATCH + 1])
def test_any_number_of_rows_is_updated(database: Database, stack: Stack, count: int) -> None:
    rows = [a_resource(stack.id, FIRST_ID + number, reason="old") for number in range(count)]
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in rows]))
    changes = [{"id": row.id, "reason": f"new {row.id}"} for row in rows]
    database.write(lambda conn: bulk.update(conn, tables.resource, changes))
    stored = database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert [row.reason for row in stored] == [f"new {row.id}" for row in rows]


def test_rows_are_selected_by_any_list_of_numbers_or_texts(database: Database, stack: Stack) -> None:
    rows = some_resources(stack)
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in rows]))
    r = tables.resource.c
    by_id = sa.select(r.id).where(bulk.OneOf(r.id), r.stack_id == stack.id).order_by(r.id)
    by_text = sa.select(r.id).where(bulk.OneOf(r.stack_id)).order_by(r.id)
    by_both = sa.select(r.id).where(bulk.OneOf(r.stack_id, "stacks"), bulk.OneOf(r.id))

    def selected(query: sa.Select[typing.Any], **lists: list[typing.Any]) -> list[int]:
        return list(database.read(lambda conn: conn.execute(query, lists).scalars().all()))

    ids = [row.id for row in rows]
    assert selected(by_id, ids=[]) == []
    assert selected(by_id, ids=[ids[3], ids[1], 1]) == [ids[1], ids[3]]
    assert selected(by_text, ids=["a'b", stack.id]) == ids
    assert selected(by_both, stacks=[stack.id], ids=ids[:1]) == ids[:1]


def test_rows_are_selected_by_texts_that_look_like_an_array(database: Database, stack: Stack) -> None:
    names = ["", "NULL", "a b", "{a,b}", "a,b", 'a"b', "a\\", "a\\\\b", "ü'\n"]
    rows = [a_resource(stack.id, FIRST_ID + number, name) for number, name in enumerate([*names, "a", "b"])]
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in rows]))
    r = tables.resource.c
    query = sa.select(r.name).where(bulk.OneOf(r.name), r.stack_id == stack.id).order_by(r.id)
    stored = database.read(lambda conn: conn.execute(query, {"ids": names}).scalars().all())
    assert list(stored) == names


_REASON = (
    sa.update(tables.resource).where(bulk.OneOf(tables.resource.c.id)).values(reason=sa.bindparam("text"))
)
_ACTION = (
    sa.update(tables.resource)
    .where(bulk.OneOf(tables.resource.c.id, "acting"))
    .values(action=sa.bindparam("verb"))
)


def reason(text: str, *ids: int) -> bulk.Write:
    return bulk.Write(_REASON, {"ids": list(ids), "text": text})


def action(verb: str, *ids: int) -> bulk.Write:
    return bulk.Write(_ACTION, {"acting": list(ids), "verb": verb})


@pytest.mark.parametrize(
    ("writes", "statements", "changed", "after"),
    [
        ([], 0, None, {1: ("", "INIT"), 2: ("", "INIT"), 3: ("", "INIT")}),
        (
            [reason("new", 1, 2), action("CHECK", 3)],
            1,
            1,
            {1: ("new", "INIT"), 2: ("new", "INIT"), 3: ("", "CHECK")},
        ),
        (  # Two values of one parameter need two statements.
            [reason("one", 1, 2), action("CHECK", 3), reason("two", 2, 3)],
            2,
            2,
            {1: ("one", "INIT"), 2: ("two", "INIT"), 3: ("two", "CHECK")},
        ),
    ],
)
def test_writes_that_were_put_off_are_few_statements_where_the_database_can(
    database: Database,
    stack: Stack,
    writes: list[bulk.Write],
    statements: int,
    changed: int | None,
    after: dict[int, tuple[str, str]],
) -> None:
    rows = [a_resource(stack.id, number, reason="") for number in (1, 2, 3)]
    database.write(lambda conn: bulk.insert(conn, tables.resource, [vars(row) for row in rows]))
    texts: list[str] = []
    put_off = list(writes)

    def write(conn: sa.Connection) -> int | None:
        sa.event.listen(conn, "before_cursor_execute", lambda *arguments: texts.append(arguments[2]))
        result = bulk.run(conn, put_off)
        return None if result is None else result.rowcount

    assert database.write(write) == changed
    assert put_off == []
    assert len(texts) == (statements if database.dialect == "postgresql" else len(writes))
    stored = database.read(lambda conn: resources.of_stack(conn, stack.id))
    assert {row.id: (row.reason, row.action) for row in stored} == after
