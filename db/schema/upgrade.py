"""Migrations of a database to the revision that this code needs."""

import pathlib
import typing
from collections.abc import Callable

from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from sqlalchemy.engine import Connection

from ..engine import Database
from ..errors import WrongRevision
from . import revisions
from .revisions import EXPANDED, NEWEST, Fit, fit_of, place_of

Progress = Callable[[str, int], None]


def silent(revision: str, moved: int) -> None:
    """Say nothing."""


def sync(database: Database, progress: Progress = silent) -> None:
    """Migrate to the newest revision; no code of an older release may run.

    :param progress: see upgrade.

    :raises WrongRevision: it belongs to a newer release.
    """
    _known(database)
    upgrade(database, progress=progress)


def expand(database: Database) -> None:
    """Add what this release needs; the code of the release before keeps working.

    :raises WrongRevision: it belongs to a newer release, or an older one's contract part comes first.
    """
    at = _known(database)
    if at is not None and place_of(at) < place_of(EXPANDED) - 1:
        raise WrongRevision(
            f"the database is at {at}: first it has to be contracted (`db sync --contract`), when no daemon "
            "of a release before that one runs any more"
        )
    if at is None or place_of(at) < place_of(EXPANDED):
        upgrade(database, EXPANDED)


def contract(database: Database, progress: Progress = silent) -> None:
    """Remove what only older releases need, up to the number that the database was expanded to.

    :param progress: see upgrade.

    :raises WrongRevision: it belongs to a newer release, or was not expanded.
    """
    at = _known(database)
    if at is not None and at.endswith("_expand"):
        upgrade(database, at.replace("_expand", "_contract"), progress)
    elif fit_of(at) != Fit.EXACT:
        raise WrongRevision(
            f"the database is at {at or 'no version'}: first it has to be expanded (`db sync --expand`), "
            "then the daemons have to be upgraded"
        )


def _known(database: Database) -> str | None:
    at = database.read(revisions.current)
    if fit_of(at) in (Fit.AHEAD, Fit.NEW):
        raise WrongRevision(
            f"the database is at {at}, this release knows {NEWEST} at the most: use the newer one"
        )
    return at


def upgrade(database: Database, revision: str = NEWEST, progress: Progress = silent) -> None:
    """Run the migrations up to a revision, in one transaction.

    :param progress: called after each batch with the migration's name and how many rows it has moved.

    A migration with a function ``move_batch`` moves rows on which daemons work.  The function runs before the
    migration, in short transactions that are retried, until it returns 0.  So the migration finds few rows.
    """
    at = database.read(revisions.current)
    for script in _ahead(at, revision):
        if at is not None and (move_batch := getattr(script.module, "move_batch", None)) is not None:
            _run(database, str(script.down_revision))
            moved = 0
            while batch := database.write(move_batch):
                moved += batch
                progress(script.revision, moved)
    _run(database, revision)


def script(revision: str) -> typing.Any:
    """Return the module of a migration; None: there is no such migration."""
    found = ScriptDirectory.from_config(_config()).get_revision(revision)
    return None if found is None else found.module


def _ahead(at: str | None, revision: str) -> list[Script]:
    """Return the migrations that are to be run, in their order."""
    found = ScriptDirectory.from_config(_config()).walk_revisions("base", revision)
    behind = -1 if at is None else place_of(at)
    return [script for script in reversed(list(found)) if place_of(script.revision) > behind]


def _run(database: Database, revision: str) -> None:
    with database.engine.connect() as conn, conn.begin():
        command.upgrade(_config(conn), revision)


def _config(conn: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(pathlib.Path(__file__).parent / "migrations"))
    attributes: dict[str, typing.Any] = config.attributes
    attributes["connection"] = conn
    return config
