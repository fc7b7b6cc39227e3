"""Event sinks of stacks, and what is still to be sent to them."""

import typing

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0008_expand"
down_revision = "0007_contract"

INDEXES = {
    "event_sink": {"ix_event_sink_root": ["root_id"], "ix_event_sink_closed": ["closed_at"]},
    "event_delivery": {"ix_event_delivery_sink": ["sink_id", "id"]},
}


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    if "has_sinks" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("stack")}:
        op.add_column("stack", sa.Column("has_sinks", sa.Boolean()))
    columns = _columns()
    for table, indexes in INDEXES.items():
        if not sa.inspect(op.get_bind()).has_table(table):
            _create(table, columns[table])
        there = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}
        for name in sorted(indexes.keys() - there):
            op.create_index(name, table, indexes[name])


def _columns() -> dict[str, list[sa.Column[typing.Any]]]:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    return {
        "event_sink": [
            sa.Column("id", sa.String(length=36), primary_key=True),
            sa.Column("root_id", sa.String(length=36), nullable=False),
            sa.Column("shard", sa.Integer(), nullable=False),
            sa.Column("target", sa.String(length=64), nullable=False),
            sa.Column("ttl", sa.Integer(), nullable=False),
            sa.Column("due_at", sa.Double(), nullable=False),
            sa.Column("failures", sa.Integer(), nullable=False),
            sa.Column("closed_at", sa.Double(), nullable=True),
        ],
        "event_delivery": [
            sa.Column("id", number, primary_key=True, autoincrement=True),
            sa.Column("sink_id", sa.String(length=36), nullable=False),
            sa.Column("at", sa.Double(), nullable=False),
            sa.Column("body", text, nullable=False),
        ],
    }


def _create(name: str, columns: list[sa.Column[typing.Any]]) -> None:
    """Create a table, in which values that differ by case differ on MariaDB, as in the other tables."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collate = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_bin"
    op.create_table(
        name,
        *columns,
        mysql_charset="utf8mb4",
        mysql_collate=collate,
        mariadb_charset="utf8mb4",
        mariadb_collate=collate,
    )
