"""Nothing: 0003_expand only adds."""

revision = "0003_contract"
down_revision = "0003_expand"


def upgrade() -> None:
    """Older code needs nothing that this release does not need."""
