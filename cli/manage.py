"""``stoker-manage``: what the operator does by hand."""

import logging
import pathlib
import sys
import typing

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from cliff.app import App  # isort: skip
from cliff.command import Command
from cliff.commandmanager import CommandManager

from ..db import revisions, schema
from ..db.errors import DatabaseError
from ..db.sealing import Sealer
from . import config_check, options, purge, ring, rotation, stack_tools
from .manage_base import AdminError, Session, conf_of, open_session
from .opening import connect, open_database
from .options import WrongConfiguration
from .version import VERSION


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


class KeyGenerate(Command):
    """Make a key for [secrets] key."""

    def take_action(self, parsed: typing.Any) -> int:
        self.app.stdout.write(f"{Sealer.generate_key()}\n")
        return 0


COMMANDS: dict[str, type[Command]] = {
    "config validate": config_check.ConfigValidate,
    "db purge": purge.DbPurge,
    "db sync": DbSync,
    "db version": DbVersion,
    "key generate": KeyGenerate,
    "ring show": ring.RingShow,
    "ring plan": ring.RingPlan,
    "ring rebalance": ring.RingRebalance,
    "ring drain": ring.RingDrain,
    "ring undrain": ring.RingUndrain,
    "secrets rotate": rotation.SecretsRotate,
    "service list": ring.ServiceList,
    "service clean": ring.ServiceClean,
    "stack fail": stack_tools.StackFail,
    "stack inspect": stack_tools.StackInspect,
    "stack retry": stack_tools.StackRetry,
}


class ManageApp(App):
    """The program; errors of the user's are one line, not a traceback."""

    def __init__(self) -> None:
        manager = CommandManager("stoker.manage")
        for name, command in COMMANDS.items():
            manager.add_command(name, command)
        super().__init__("Administration of Stoker.", VERSION, manager, deferred_help=True)
        self.conf: typing.Any = None

    def build_option_parser(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """With the files to read options from."""
        parser = super().build_option_parser(*args, **kwargs)
        parser.add_argument("--config-file", type=pathlib.Path, action="append", help="file with options")
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        """Read the configuration."""
        logging.getLogger("alembic").setLevel(logging.WARNING)  # It tells of each look at the version.
        if argv[:1] != ["config"]:  # It says itself what is wrong.
            self.conf = options.load([], program="stoker-manage", files=self.options.config_file)

    def session(self) -> Session:
        """An open database."""
        return open_session(self.conf)

    def run_subcommand(self, argv: list[str]) -> int:
        """Run one command."""
        try:
            return int(super().run_subcommand(argv) or 0)
        except (AdminError, DatabaseError, WrongConfiguration) as error:
            self.stderr.write(f"stoker-manage: {error}\n")
            return 1


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    return int(ManageApp().run(sys.argv[1:] if arguments is None else arguments))
