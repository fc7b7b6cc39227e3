"""The revisions of the schema, and whether this code works on the one that a database is at.

The first revision is ``0001``.  Each change of the schema has a number and two parts.  ``NNNN_expand`` only
adds, so the code of the previous release continues to work.  ``NNNN_contract`` removes what only that code
needs, and forbids what it alone does.  They follow each other: ``0001, 0002_expand, 0002_contract,
0003_expand, …``  So code that was written for a number works on both its parts, and on the first part of the
next number.

The migrations themselves are in upgrade.py, because Alembic takes long to import.
"""

import enum
import re

import sqlalchemy as sa

NUMBER = 2
"""The number of the schema that this code is written for."""
_TABLE = "alembic_version"
_VERSION = sa.select(sa.table(_TABLE, sa.column("version_num")).c.version_num)
_NAME = re.compile(r"(?P<first>0001)|(?!0001)(?P<number>\d{4})_(?P<part>expand|contract)")


def expanded(number: int = NUMBER) -> str:
    """Return the first revision on which code for a number works, beside the code of the previous release."""
    return f"{number:04}_expand" if number > 1 else "0001"


def newest(number: int = NUMBER) -> str:
    """Return the last revision that code for a number knows."""
    return f"{number:04}_contract" if number > 1 else "0001"


EXPANDED = expanded()
"""The first revision on which this code works, beside the code of the previous release."""
NEWEST = newest()
"""The last revision in migrations/versions; tables.py describes it exactly."""


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


def fit_of(revision: str | None, number: int = NUMBER) -> Fit:
    """Return how a revision fits code for a number; None: the database was never migrated.

    >>> [fit_of(name, 8).name for name in ("0007_contract", "0008_expand", "0008_contract", "0009_expand")]
    ['OLD', 'EXPANDED', 'EXACT', 'AHEAD']
    """
    if revision is None:
        return Fit.NONE
    ahead = place_of(revision) - place_of(newest(number))
    if ahead < -1:
        return Fit.OLD
    return {-1: Fit.EXPANDED, 0: Fit.EXACT, 1: Fit.AHEAD}.get(ahead, Fit.NEW)


def place_of(revision: str) -> int:
    """Return a revision's place among all, in their order; one with an unknown kind of name is the last."""
    name = _NAME.fullmatch(revision)
    if name is None:
        return 2 * 10**4
    return 2 * int(name["first"] or name["number"]) - (name["part"] == "expand")


def unknown(revision: str, number: int = NUMBER) -> str:
    """Return the message about a database at a revision that code for a number does not know."""
    return (
        f"the database is at {revision}, this release knows {newest(number)} at the most: use the release "
        "that has migrated it, or a new database"
    )


def current(conn: sa.Connection) -> str | None:
    """Return the revision that the database is at; None: it was never migrated."""
    if not sa.inspect(conn).has_table(_TABLE):
        return None
    revision: str | None = conn.execute(_VERSION).scalar()
    return revision
