"""The revisions of the schema, and whether this code works on the one that a database is at.

Each change of the schema has a number and two parts.  ``NNNN_expand`` only adds, so the code of the previous
release continues to work.  ``NNNN_contract`` removes what only that code needs.  They follow each other:
``0001, 0002_expand, 0002_contract, 0003_expand, …``  So code that was written for a number works on both its
parts, and on the first part of the next number.

The migrations themselves are in upgrade.py, because Alembic takes long to import.
"""

import enum
import re

import sqlalchemy as sa

NUMBER = 8
"""The number of the schema that this code is written for."""
EXPANDED = f"{NUMBER:04}_expand"
"""The first revision on which this code works, beside the code of the previous release."""
NEWEST = f"{NUMBER:04}_contract"
"""The last revision in migrations/versions; tables.py describes it exactly."""
_TABLE = "alembic_version"
_VERSION = sa.select(sa.table(_TABLE, sa.column("version_num")).c.version_num)
_NAME = re.compile(r"(\d{4})(?:_(expand|contract))?")


class Fit(enum.Enum):
    """The fit of a database's revision to this code; the values are shown to operators."""

    NONE = "it was never set up"
    OLD = "it is too old for this code"
    EXPANDED = "this code works on it, and that of the release before"
    EXACT = "it is as this code wants it"
    AHEAD = "the next release has added to it: this code works on it, too"
    NEW = "it is too new for this code"

    @property
    def works(self) -> bool:
        """Return whether this code works on it."""
        return self in (Fit.EXPANDED, Fit.EXACT, Fit.AHEAD)


def fit_of(revision: str | None) -> Fit:
    """Return how a revision fits this code; None: the database was never migrated.

    >>> [fit_of(name).name for name in ("0007_contract", "0008_expand", "0008_contract", "0009_expand")]
    ['OLD', 'EXPANDED', 'EXACT', 'AHEAD']
    """
    if revision is None:
        return Fit.NONE
    ahead = place_of(revision) - place_of(NEWEST)
    if ahead < -1:
        return Fit.OLD
    return {-1: Fit.EXPANDED, 0: Fit.EXACT, 1: Fit.AHEAD}.get(ahead, Fit.NEW)


def place_of(revision: str) -> int:
    """Return a revision's place among all, in their order; one with an unknown kind of name is the last."""
    found = _NAME.fullmatch(revision)
    return 2 * int(found[1]) - (found[2] == "expand") if found else 2 * 10**4


def current(conn: sa.Connection) -> str | None:
    """Return the revision that the database is at; None: it was never migrated."""
    if not sa.inspect(conn).has_table(_TABLE):
        return None
    found: str | None = conn.execute(_VERSION).scalar()
    return found


def is_contracted(conn: sa.Connection) -> bool:
    """Return whether the schema is contracted: then no code of an older release works on it any more.

    A schema never goes back.  So the answer yes is kept with the connection.
    """
    if conn.info.get(_CONTRACTED):
        return True
    at = conn.execute(_VERSION).scalar()
    found = at is not None and place_of(at) >= place_of(NEWEST)
    if found:
        conn.info[_CONTRACTED] = True
    return found


_CONTRACTED = "stoker_contracted"
