"""Stored JSON values."""

import typing

import pytest
from sqlalchemy.dialects import sqlite
from stoker.db.errors import DamagedRow
from stoker.db.schema.column_types import JsonText


def read(text: str | None, shape: type | None = None) -> typing.Any:
    return JsonText(shape).result_processor(sqlite.dialect(), None)(text)


@pytest.mark.parametrize("text", ["[1,2]", " [1, 2]", "[1,2]\n"])
def test_a_text_is_read_with_and_without_blanks(text: str) -> None:
    assert read(text) == [1, 2]
    assert read(text, list) == [1, 2]


def test_no_text_is_none() -> None:
    assert read(None, dict) is None


@pytest.mark.parametrize("text", ["", " ", "[1,2", "[1,2] 3", "{}{}", "nil"])
def test_a_text_that_is_no_json_is_damaged(text: str) -> None:
    with pytest.raises(DamagedRow, match="not JSON"):
        read(text)


def test_a_value_of_another_kind_is_damaged() -> None:
    with pytest.raises(DamagedRow, match="is a list where a dict is needed"):
        read("[]", dict)
