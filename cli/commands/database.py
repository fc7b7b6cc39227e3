"""``stoker-manage db sync`` and ``db version``."""

import typing

from cliff.command import Command

from ...db import conductors
from ...db.engine import Database
from ...db.schema import revisions, upgrade
from ...db.schema.revisions import Fit
from ...observe.terminal import write_lines
from ..wiring.database import connect, open_database
from .base import AdminError, conf_of
from .progress import ProgressLine


class DbSync(Command):
    """Migrate the database to the version that this release needs, and set its number of shards.

    For a rolling upgrade run it with --expand before the first daemon is upgraded, and with --contract after
    the last one.  Without either it does both, and no daemon of an older release may run.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        part = parser.add_mutually_exclusive_group()
        part.add_argument(
            "--expand",
            action="store_true",
            help="only add what this release needs",
        )
        part.add_argument("--contract", action="store_true", help="only remove what older releases need")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        conf = conf_of(self)
        database = connect(conf, long_work=True)
        line = ProgressLine(self.app.stderr)
        migrate(
            database,
            expand=parsed.expand,
            contract=parsed.contract,
            progress=lambda revision, moved: line.count(f"sync: {revision}", moved, "rows moved"),
        )
        line.clear()
        if revisions.fit_of(database.read(revisions.current)).works:
            _, count = open_database(conf)
            at = database.read(revisions.current)
            write_lines(self.app.stdout, f"the database is at {at}, with {count} shards")
        else:
            write_lines(self.app.stdout, f"the database is at {database.read(revisions.current)}")
        return 0


def migrate(
    database: Database,
    *,
    expand: bool,
    contract: bool,
    progress: upgrade.Progress = upgrade.silent,
    migrations: upgrade.Migrations = upgrade.OWN,
) -> None:
    """Run one part of the migration; both if neither is chosen.

    :param progress: a function that reports the progress of a long migration.
    :raises WrongRevision: the database belongs to a newer release, or an earlier part is missing.
    :raises AdminError: a conductor of an older release still runs.
    """
    if expand:
        upgrade.expand(database, migrations)
        return
    is_behind = migrations.fit_of(database.read(revisions.current)) in (Fit.OLD, Fit.EXPANDED)
    if is_behind and (old := outdated(database, migrations.number)):
        raise AdminError(
            f"conductors of an older release run: {', '.join(old)}; they need what would be removed. "
            "Upgrade or stop them first; `db sync --expand` can be run now"
        )
    (upgrade.contract if contract else upgrade.sync)(database, progress, migrations)


def outdated(database: Database, number: int = revisions.NUMBER) -> list[str]:
    """Return the hosts of the conductors that report and whose code needs a schema before a number."""
    return database.read(lambda conn: conductors.written_before(conn, number, database.clock()))


class DbVersion(Command):
    """Show the version of the database, and whether this release works on it."""

    def take_action(self, parsed: typing.Any) -> int:
        at = connect(conf_of(self)).read(revisions.current)
        write_lines(self.app.stdout, at or "never migrated")
        write_lines(self.app.stderr, revisions.fit_of(at).value)
        return 0
