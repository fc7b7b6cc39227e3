"""Inserts of rows that may exist already, in the dialect of each database."""

import functools
import typing
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Connection


def insert_or_update(
    conn: Connection, table: sa.Table, row: Mapping[str, typing.Any], changed: Sequence[str]
) -> sa.Insert:
    """Return an insert of the row that, where its primary key exists, sets the `changed` columns instead.

    :param changed: names of columns; empty: an existing row stays as it is.
    """
    keys = [column.name for column in table.primary_key]
    values = {name: row[name] for name in changed}
    if conn.dialect.name in ("mysql", "mariadb"):
        values = values or {keys[0]: row[keys[0]]}
        return mysql.insert(table).values(dict(row)).on_duplicate_key_update(values)
    if conn.dialect.name == "postgresql":
        insert = postgresql.insert(table).values(dict(row))
        if not values:
            return insert.on_conflict_do_nothing(index_elements=keys)
        return insert.on_conflict_do_update(index_elements=keys, set_=values)
    lite = sqlite.insert(table).values(dict(row))
    if not values:
        return lite.on_conflict_do_nothing(index_elements=keys)
    return lite.on_conflict_do_update(index_elements=keys, set_=values)


@functools.cache
def insert_new(dialect: str, table: sa.Table, key: str) -> sa.Insert:
    """Return an insert that skips rows whose `key`, a column with a unique index, exists; built once.

    :param dialect: name of the connection's dialect.
    """
    if dialect in ("mysql", "mariadb"):
        # Not INSERT IGNORE: that turns every error into a warning.
        return mysql.insert(table).on_duplicate_key_update({key: table.c[key]})
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing(index_elements=[key])
    return sqlite.insert(table).on_conflict_do_nothing(index_elements=[key])
