"""Software configs, their deployments, and the servers that read them."""

import typing

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006_expand"
down_revision = "0005_contract"

INDEXES = {
    "software_config": {"ix_software_config_project": ["project_id", "created_at", "id"]},
    "software_deployment": {
        "ix_software_deployment_project": ["project_id", "created_at", "id"],
        "ix_software_deployment_server": ["server_id"],
        "ix_software_deployment_config": ["config_id"],
    },
    "software_server": {"ix_software_server_unused": ["unused_at"]},
}


def upgrade() -> None:
    """MariaDB keeps each statement at once: what a run that was broken off has done is left as it is."""
    columns = _columns()
    for table, indexes in INDEXES.items():
        if not sa.inspect(op.get_bind()).has_table(table):
            _create(table, columns[table])
        there = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}
        for name in indexes.keys() - there:
            op.create_index(name, table, indexes[name])


def _columns() -> dict[str, list[sa.Column[typing.Any]]]:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    return {
        "software_config": [
            sa.Column("id", sa.String(length=36), primary_key=True),
            sa.Column("project_id", sa.String(length=64), nullable=False),
            sa.Column("name", sa.String(length=255), nullable=True),
            sa.Column("tool", sa.String(length=255), nullable=True),
            sa.Column("body", text, nullable=False),
            sa.Column("stack_id", sa.String(length=36), nullable=True),
            sa.Column("resource_id", number, nullable=True),
            sa.Column("created_at", sa.Double(), nullable=False),
        ],
        "software_deployment": [
            sa.Column("id", sa.String(length=36), primary_key=True),
            sa.Column("project_id", sa.String(length=64), nullable=False),
            sa.Column("server_id", sa.String(length=255), nullable=False),
            sa.Column("config_id", sa.String(length=36), nullable=False),
            sa.Column("action", sa.String(length=255), nullable=True),
            sa.Column("status", sa.String(length=255), nullable=True),
            sa.Column("reason", text, nullable=False),
            sa.Column("input_values", text, nullable=True),
            sa.Column("output_values", text, nullable=True),
            sa.Column("stack_id", sa.String(length=36), nullable=True),
            sa.Column("resource_id", number, nullable=True),
            sa.Column("created_at", sa.Double(), nullable=False),
            sa.Column("updated_at", sa.Double(), nullable=True),
        ],
        "software_server": [
            sa.Column("server_id", sa.String(length=255), primary_key=True),
            sa.Column("project_id", sa.String(length=64), primary_key=True),
            sa.Column("changed_at", sa.Double(), nullable=False),
            sa.Column("read_at", sa.Double(), nullable=True),
            sa.Column("read_version", sa.Double(), nullable=True),
            sa.Column("unused_at", sa.Double(), nullable=True),
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
