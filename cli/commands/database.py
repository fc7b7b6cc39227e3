"""``stoker-manage db sync`` and ``db version``."""

import typing

from cliff.command import Command

from ...db import conductors
from ...db.engine import Database
from ...db.schema import revisions, upgrade
from ..wiring.database import connect, open_database
from .base import AdminError, conf_of


class DbSync(Command):
    """Bring the database to the version that this release needs, and fix its number of shards.

    While daemons of the release before run: with --expand before the first one is upgraded, with --contract
    after the last one.  Without either it does both, and no daemon of an older release may run."""

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        part = parser.add_mutually_exclusive_group()
        part.add_argument("--expand", action="store_true", help="only add what this release needs")
        part.add_argument("--contract", action="store_true", help="only take away what older releases need")
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        conf = conf_of(self)
        database = connect(conf, long_work=True)
        bring(database, expand=parsed.expand, contract=parsed.contract)
        if revisions.fit_of(database.read(revisions.current)).works:
            _, count = open_database(conf)
            at = database.read(revisions.current)
            self.app.stdout.write(f"the database is at {at}, with {count} shards\n")
        else:
            self.app.stdout.write(f"the database is at {database.read(revisions.current)}\n")
        return 0


def bring(database: Database, *, expand: bool, contract: bool) -> None:
    """Run the part that is wanted; both where neither is.

    :raises WrongRevision: see schema.py.
    :raises AdminError: a conductor would break.
    """
    if expand:
        upgrade.expand(database)
        return
    if database.read(revisions.current) not in (None, revisions.NEWEST) and (old := outdated(database)):
        raise AdminError(
            f"conductors of an older release run: {', '.join(old)}; they need what would be taken away. "
            "Upgrade or stop them first; `db sync --expand` can be run now"
        )
    (upgrade.contract if contract else upgrade.sync)(database)


def outdated(database: Database) -> list[str]:
    """Return the hosts of the conductors that report and whose code is written for an older schema."""
    found = conductors.may_rejoin(database.read(conductors.list_all), database.clock())
    return [c.host for c in found if c.written_for < revisions.NUMBER]


class DbVersion(Command):
    """Show which version the database is at, and whether this release works on it."""

    def take_action(self, parsed: typing.Any) -> int:
        at = connect(conf_of(self)).read(revisions.current)
        self.app.stdout.write(f"{at or 'never migrated'}\n")
        self.app.stderr.write(f"{revisions.fit_of(at).value}\n")
        return 0
