"""Traversals get a table; until the schema is contracted, they are stored as finish tasks as before."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004_expand"
down_revision = "0003_contract"

INDEXES = {
    "ix_traversal_due": ["due_at", "shard"],
    "ix_traversal_traversal": ["traversal"],
    "ix_traversal_stack": ["stack_id"],
}


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    if not sa.inspect(op.get_bind()).has_table("traversal"):
        _create(number, text)
    there = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("traversal")}
    for name in INDEXES.keys() - there:
        op.create_index(name, "traversal", INDEXES[name])


def _create(number: sa.types.TypeEngine[int], text: sa.types.TypeEngine[str]) -> None:
    """Create the table, in which values that differ by case differ on MariaDB, as in the other tables."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collate = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_bin"
    op.create_table(
        "traversal",
        sa.Column("id", number, autoincrement=False, nullable=False),
        sa.Column("traversal", sa.String(length=36), nullable=False),
        sa.Column("stack_id", sa.String(length=36), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("open_tasks", sa.Integer(), nullable=False),
        sa.Column("held_tasks", sa.Integer(), nullable=False),
        sa.Column("failure", text, nullable=True),
        sa.Column("aborted", sa.Boolean(), nullable=False),
        sa.Column("deadline_policy", sa.String(length=10), nullable=False),
        sa.Column("waits_for_paused_children", sa.Boolean(), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        mysql_charset="utf8mb4",
        mysql_collate=collate,
        mariadb_charset="utf8mb4",
        mariadb_collate=collate,
    )
