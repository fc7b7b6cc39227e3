"""Migrations of a database to the revision that this code needs."""

import os
import pathlib
import time
import typing
from collections.abc import Callable
from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy.engine import Connection

from ..engine import Database
from ..errors import RowLocked, WrongRevision
from . import revisions
from .revisions import Fit, place_of

Progress = Callable[[str, int], None]
HERE = pathlib.Path(__file__).parent / "migrations"
LONGEST_WAIT = 300.0
"""Seconds for which migrations wait for tables that others hold, such as a backup."""
PAUSE = 1.0
"""Seconds between two tries."""


@dataclass(frozen=True)
class Migrations:
    """The migrations that a release knows.

    :ivar number: number of the schema that its code is written for.
    :ivar folders: folders of the migrations' files.
    """

    number: int = revisions.NUMBER
    folders: tuple[pathlib.Path, ...] = (HERE / "versions",)

    @property
    def expanded(self) -> str:
        """Return the first revision on which the release works."""
        return revisions.expanded(self.number)

    @property
    def newest(self) -> str:
        """Return the last revision."""
        return revisions.newest(self.number)

    def fit_of(self, revision: str | None) -> Fit:
        """Return how a revision fits the release."""
        return revisions.fit_of(revision, self.number)

    def config(self, conn: Connection | None = None) -> Config:
        """Return Alembic's configuration, with the connection that env.py uses."""
        config = Config()
        config.set_main_option("script_location", str(HERE))
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", os.pathsep.join(map(str, self.folders)))
        attributes: dict[str, typing.Any] = config.attributes
        attributes["connection"] = conn
        return config


OWN = Migrations()
"""The migrations of this release."""


def silent(revision: str, moved: int) -> None:
    """Say nothing."""


def sync(database: Database, progress: Progress = silent, migrations: Migrations = OWN) -> None:
    """Migrate to the newest revision; no code of an older release may run.

    :param progress: callback for each batch of moved rows; see upgrade.
    :raises WrongRevision: the database belongs to a newer release.
    """
    _known_revision(database, migrations)
    upgrade(database, progress=progress, migrations=migrations)


def expand(database: Database, migrations: Migrations = OWN) -> None:
    """Add the columns and tables of this release; the code of the release before keeps working.

    :raises WrongRevision: the database belongs to a newer release, or the contract part of an older release
        comes first.
    """
    at = _known_revision(database, migrations)
    if at is not None and place_of(at) < place_of(migrations.expanded) - 1:
        raise WrongRevision(
            f"the database is at {at}: first it has to be contracted (`db sync --contract`), when no daemon "
            "of a release before that one runs any more"
        )
    if at is None or place_of(at) < place_of(migrations.expanded):
        upgrade(database, migrations.expanded, migrations=migrations)


def contract(database: Database, progress: Progress = silent, migrations: Migrations = OWN) -> None:
    """Remove the parts that only older releases need, up to the number that the database was expanded to.

    :param progress: callback for each batch of moved rows; see upgrade.
    :raises WrongRevision: the database belongs to a newer release, or was not expanded.
    """
    at = _known_revision(database, migrations)
    if at is not None and at.endswith("_expand"):
        upgrade(database, at.replace("_expand", "_contract"), progress, migrations)
    elif migrations.fit_of(at) != Fit.EXACT:
        raise WrongRevision(
            f"the database is at {at or 'no version'}: first it has to be expanded (`db sync --expand`), "
            "then the daemons have to be upgraded"
        )


def _known_revision(database: Database, migrations: Migrations) -> str | None:
    at = database.read(revisions.current)
    if at is not None and migrations.fit_of(at) in (Fit.AHEAD, Fit.NEW):
        raise WrongRevision(revisions.unknown(at, migrations.number))
    return at


def upgrade(
    database: Database,
    revision: str | None = None,
    progress: Progress = silent,
    migrations: Migrations = OWN,
) -> None:
    """Run the migrations up to a revision, in one transaction.

    :param revision: the revision to reach; None: the newest.
    :param progress: called after each batch with the migration's name and how many rows it has moved.

    A migration with a function ``move_batch`` moves rows on which daemons work.  The function runs before the
    migration, in short transactions that are retried, until it returns 0.  So the migration finds few rows.
    """
    at = database.read(revisions.current)
    target = revision or migrations.newest
    for script in _ahead(at, target, migrations):
        if at is not None and (move_batch := getattr(script.module, "move_batch", None)) is not None:
            _run(database, str(script.down_revision), migrations)
            moved = 0
            while batch := database.write(move_batch):
                moved += batch
                progress(script.revision, moved)
    _run(database, target, migrations)


def _ahead(at: str | None, revision: str, migrations: Migrations) -> list[Script]:
    """Return the migrations that are to be run, in their order."""
    scripts = ScriptDirectory.from_config(migrations.config()).walk_revisions("base", revision)
    current = -1 if at is None else place_of(at)
    return [script for script in reversed(list(scripts)) if place_of(script.revision) > current]


def _run(database: Database, revision: str, migrations: Migrations) -> None:
    """Run migrations in one transaction, as soon as nobody holds a table that they change.

    Whoever uses such a table waits behind them, so they wait briefly, and again after a pause.
    """
    end = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            database.write(lambda conn: command.upgrade(migrations.config(conn), revision), brief=True)
        except RowLocked:
            if time.monotonic() >= end:
                raise
            time.sleep(PAUSE)
        else:
            return
