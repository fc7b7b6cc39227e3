"""Resources and stacks store as columns what older code reads from the text of a reason.

Tasks need no value of the columns ``held`` and ``reason`` any more, which 0005_contract drops.
"""

import typing

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005_expand"
down_revision = "0004_contract"


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    _add("resource", sa.Column("cancelled", sa.Boolean()))
    _add("resource", sa.Column("reinstated", sa.Boolean()))
    _add("stack", sa.Column("failure_cause", text))
    _add("traversal", sa.Column("failure_cause", text))
    if _columns("task")["held"]["default"] is None:
        with op.batch_alter_table("task") as task:  # SQLite can change no column in its place.
            task.alter_column("held", existing_type=sa.Integer(), existing_nullable=False, server_default="0")


def _columns(table: str) -> dict[str, typing.Any]:
    return {column["name"]: column for column in sa.inspect(op.get_bind()).get_columns(table)}


def _add(table: str, new: sa.Column[typing.Any]) -> None:
    if new.name not in _columns(table):
        op.add_column(table, new)
