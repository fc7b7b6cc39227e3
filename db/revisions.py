"""Which revision of the schema a database is at, without what migrates it: that takes long to import."""

import sqlalchemy as sa

from .engine import Database

NEWEST = "0001"
"""The revision that this code needs: the last of migrations/versions."""
_TABLE = "alembic_version"


def current(database: Database) -> str | None:
    """The revision the database is at; None: it was never migrated.

    :raises Unavailable: the database does not answer.
    """
    return database.read(_current)


def _current(conn: sa.Connection) -> str | None:
    if not sa.inspect(conn).has_table(_TABLE):
        return None
    found: str | None = conn.execute(sa.text(f"SELECT version_num FROM {_TABLE}")).scalar()
    return found
