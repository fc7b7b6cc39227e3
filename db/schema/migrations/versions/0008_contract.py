"""Fills columns of rows that failed while 0007_contract ended; 0008_expand only adds."""

import importlib

revision = "0008_contract"
down_revision = "0008_expand"

move_batch = importlib.import_module("stoker.db.schema.migrations.versions.0005_contract").move_batch


def upgrade() -> None:
    """Older code needs nothing that this release does not need."""
