"""Tasks remember the conductors that were lost with them; conductors report the number of their schema."""

import typing

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003_expand"
down_revision = "0002_contract"


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    _add("task", sa.Column("losses", text))
    _add("conductor", sa.Column("schema_number", sa.Integer))
    _add("conductor", sa.Column("schema_member", sa.String(length=320)))
    _add("conductor", sa.Column("clock_ahead", sa.Double))


def _add(table: str, new: sa.Column[typing.Any]) -> None:
    if new.name not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, new)
