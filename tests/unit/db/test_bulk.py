"""The parameters of statements for many rows on PostgreSQL: texts, whose parts are encoded one by one."""

import json
import typing
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from stoker.db import bulk

TABLE = sa.Table("fruit", sa.MetaData(), sa.Column("id", sa.BigInteger), sa.Column("name", sa.Text))


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
