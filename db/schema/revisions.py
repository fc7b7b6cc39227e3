"""Which revision of the schema a database is at, and whether this code can work on it.

Each change of the schema has a number and two parts.  ``NNNN_expand`` only adds, so that the code of the
release before works on as it did; ``NNNN_contract`` takes away what only that one needs.  They stand in one
row: ``0001, 0002_expand, 0002_contract, 0003_expand, …``  So code that was written for a number works on
both its parts, and on the next number's first one.

Apart from what migrates, for that takes long to import.
"""

import enum
import re

import sqlalchemy as sa

NUMBER = 4
"""Of the schema that this code is written for."""
EXPANDED = f"{NUMBER:04}_expand"
"""From here on this code works, and beside it that of the release before."""
NEWEST = f"{NUMBER:04}_contract"
"""The last of migrations/versions: what the tables in tables.py say, exactly."""
_TABLE = "alembic_version"
_VERSION = sa.select(sa.table(_TABLE, sa.column("version_num")).c.version_num)
_NAME = re.compile(r"(\d{4})(?:_(expand|contract))?")


class Fit(enum.Enum):
    """How a database's revision and this code stand to each other."""

    NONE = "it was never set up"
    OLD = "it is too old for this code"
    EXPANDED = "this code works on it, and that of the release before"
    EXACT = "it is as this code wants it"
    AHEAD = "the next release has added to it: this code works on it, too"
    NEW = "it is too new for this code"

    @property
    def works(self) -> bool:
        """Whether this code can work on it."""
        return self in (Fit.EXPANDED, Fit.EXACT, Fit.AHEAD)


def fit_of(revision: str | None) -> Fit:
    """What a revision means to this code; None: the database was never migrated.

    >>> [fit_of(name).name for name in ("0003_contract", "0004_expand", "0004_contract", "0005_expand")]
    ['OLD', 'EXPANDED', 'EXACT', 'AHEAD']
    """
    if revision is None:
        return Fit.NONE
    ahead = place_of(revision) - place_of(NEWEST)
    if ahead < -1:
        return Fit.OLD
    return {-1: Fit.EXPANDED, 0: Fit.EXACT, 1: Fit.AHEAD}.get(ahead, Fit.NEW)


def place_of(revision: str) -> int:
    """Grows along the row; of a revision that is not named like ours: behind all that may ever be."""
    found = _NAME.fullmatch(revision)
    return 2 * int(found[1]) - (found[2] == "expand") if found else 2 * 10**4


def current(conn: sa.Connection) -> str | None:
    """Return the revision that the database is at; None: it was never migrated."""
    if not sa.inspect(conn).has_table(_TABLE):
        return None
    found: str | None = conn.execute(_VERSION).scalar()
    return found


def is_contracted(conn: sa.Connection, *, hold: bool = False) -> bool:
    """Return whether the schema is contracted, so that no code of an older release works on it any more.

    No schema goes back, so a yes is remembered with the connection, and asked for once in its life.

    :param hold: where it is not contracted, it will not be until this transaction has ended: for one who
        writes something that the contract part takes away.
    """
    if conn.info.get(_CONTRACTED):
        return True
    query = _VERSION.with_for_update(read=True) if hold else _VERSION
    # InnoDB answers nothing if it has waited for the row while that was changed.
    at = conn.execute(query).scalar() or conn.execute(query).scalar()
    found = at is not None and place_of(at) >= place_of(NEWEST)
    if found:
        conn.info[_CONTRACTED] = True
    return found


_CONTRACTED = "stoker_contracted"
