"""The parameter of statements for many rows on PostgreSQL: one text, whose parts are encoded one by one."""

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
