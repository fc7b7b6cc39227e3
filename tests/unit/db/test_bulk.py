"""The parameters of statements for many rows on PostgreSQL: texts, whose parts are encoded one by one."""

import json
import typing
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from stoker.db import bulk

TABLE = sa.Table("fruit", sa.MetaData(), sa.Column("id", sa.BigInteger), sa.Column("name", sa.Text))


NAMES = sa.select(TABLE.c.name).where(bulk.OneOf(TABLE.c.id), bulk.OneOf(TABLE.c.name, "names"))


def test_a_single_id_is_compared_and_not_sought_in_a_list() -> None:
    statement, values = bulk.by_ids(NAMES, {"ids": [7], "names": ["a", "b"], "now": 1.0})
    compiled = statement.compile(dialect=postgresql.dialect())
    assert "fruit.id = %(ids)s" in str(compiled)
    assert "fruit.name = any(" in str(compiled)
    assert values == {"ids": 7, "names": ["a", "b"], "now": 1.0}


def test_a_statement_has_one_form_for_lists_of_any_length_and_one_for_each_single_id() -> None:
    assert bulk.by_ids(NAMES, {"ids": [1, 2], "names": []}) == (NAMES, {"ids": [1, 2], "names": []})
    forms = [bulk.by_ids(NAMES, {"ids": [number], "names": ["a"]})[0] for number in (1, 2)]
    assert forms[0] is forms[1]


@pytest.mark.parametrize("count", [1, bulk.BATCH, bulk.BATCH + 1, 2 * bulk.BATCH + 1])
def test_all_rows_are_in_one_text_in_their_order(count: int) -> None:
    conn: typing.Any = SimpleNamespace(dialect=postgresql.dialect())
    rows = [{"id": number, "name": f'[{number}, "]'} for number in range(count)]
    write = bulk.insertion(conn, TABLE, rows)
    assert isinstance(write.parameters, dict)
    assert json.loads(write.parameters["records"]) == rows


@pytest.mark.parametrize(
    ("count", "statements"),
    [(0, 0), (1, 1), (bulk.INSERTED_TOGETHER, 1), (bulk.INSERTED_TOGETHER + 1, 2)],
)
def test_a_long_insert_is_several_statements_with_each_row_once(count: int, statements: int) -> None:
    texts: list[str] = []
    conn: typing.Any = SimpleNamespace(
        dialect=postgresql.dialect(),
        execute=lambda statement, parameters: texts.append(parameters["records"]),
    )
    rows = [{"id": number, "name": ""} for number in range(count)]
    bulk.insert(conn, TABLE, iter(rows))
    assert [row for text in texts for row in json.loads(text)] == rows
    assert len(texts) == statements


OTHER = sa.Table("basket", sa.MetaData(), sa.Column("id", sa.BigInteger))


@pytest.mark.parametrize(
    ("dialect", "fruits", "baskets", "names"),
    [
        (postgresql, 1, bulk.FEW - 1, [["records_basket", "records_fruit"]]),
        (postgresql, bulk.FEW, 0, [["records"]]),
        (postgresql, 1, bulk.FEW, [["records"], ["records"]]),
        (postgresql, bulk.INSERTED_TOGETHER + 1, 1, [["records"]] * 3),
        (postgresql, 0, 0, []),
        (sqlite, 1, 2, [["id", "name"], ["id"]]),
    ],
)
def test_few_rows_of_several_tables_are_one_statement_on_postgresql(
    dialect: typing.Any, fruits: int, baskets: int, names: list[list[str]]
) -> None:
    conn: typing.Any = SimpleNamespace(dialect=dialect.dialect())
    rows = {
        TABLE: ({"id": number, "name": ""} for number in range(fruits)),
        OTHER: ({"id": number} for number in range(baskets)),
    }
    writes = list(bulk.insertions(conn, rows))
    records = [
        write.parameters if isinstance(write.parameters, dict) else write.parameters[0] for write in writes
    ]
    assert [sorted(each) for each in records] == names
    if writes:  # The rows of the first table are those that are counted.
        assert writes[0].statement.table is TABLE
