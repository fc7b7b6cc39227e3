"""``stoker-manage db sync`` and ``db version``."""

import typing

from cliff.command import Command

from ..db import revisions, schema
from .manage_base import conf_of
from .opening import connect, open_database


class DbSync(Command):
    """Bring the database to the version that this release needs, and fix its number of shards."""

    def take_action(self, parsed: typing.Any) -> int:
        conf = conf_of(self)
        schema.upgrade(connect(conf))
        database, count = open_database(conf)
        self.app.stdout.write(f"the database is at {revisions.current(database)}, with {count} shards\n")
        return 0


class DbVersion(Command):
    """Show which version the database is at."""

    def take_action(self, parsed: typing.Any) -> int:
        database = connect(conf_of(self))
        self.app.stdout.write(f"{revisions.current(database) or 'never migrated'}\n")
        return 0
