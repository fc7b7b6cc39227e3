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
        if_not_exists=True,
    )
    for name, columns in INDEXES.items():
        op.create_index(name, "traversal", columns, if_not_exists=True)
