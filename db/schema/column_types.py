"""Types of columns that are the same on SQLite, PostgreSQL and MariaDB."""

import json
import re
import typing

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect

LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
RowId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Instant: sa.Double[float] = sa.Double()


class JsonText(sa.types.TypeDecorator[typing.Any]):
    """A JSON value as compact text; SQL NULL is None."""

    impl = LongText
    cache_ok = True

    def process_bind_param(self, value: typing.Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> typing.Any:
        return None if value is None else json.loads(value)


_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class CleanText(sa.types.TypeDecorator[str]):
    """A long text from outside, such as a plugin's error message.

    What no database takes, or not each of them (NUL, half of a surrogate pair), becomes U+FFFD: a strange
    message must not make its resource's failure impossible to store.
    """

    impl = LongText
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _UNSTORABLE.sub("\ufffd", value)
