"""A task always has a resource."""

import sqlalchemy as sa
from alembic import op

revision = "0002_contract"
down_revision = "0002_expand"


def upgrade() -> None:
    """Forbid NULL; on MariaDB it may be done again."""
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    with op.batch_alter_table("task") as task:  # SQLite can change no column in its place.
        task.alter_column("resource_id", existing_type=row_id, nullable=False)
