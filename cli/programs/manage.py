"""``stoker-manage``: the operator's commands."""

import logging
import pathlib
import sys
import typing
from collections.abc import Iterable
from importlib.metadata import EntryPoint

from ...observe.terminal import write_lines
from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from cliff.app import App  # isort: skip
from cliff.commandmanager import CommandManager

from ...db.errors import DatabaseError
from ...features.registry import Feature
from ..commands.base import AdminError
from ..config import options
from ..config.about import description, epilog
from ..config.errors import WrongConfiguration
from ..daemon.main_loop import run_command
from ..daemon.version import VERSION
from ..features import FEATURES

PROGRAM = "stoker-manage"
GROUP = "stoker.manage"
KERNEL_COMMANDS = {
    "config from-heat": "from_heat:ConfigFromHeat",
    "config validate": "config:ConfigValidate",
    "db purge": "purge:DbPurge",
    "db recount": "recount:DbRecount",
    "db sync": "database:DbSync",
    "db version": "database:DbVersion",
    "files": "files:Files",
    "key generate": "keys:KeyGenerate",
    "secrets forget": "secrets:SecretsForget",
    "secrets rotate": "secrets:SecretsRotate",
    "type list": "resource_types:TypeList",
}
"""The commands that are no feature's, by name, each as ``module:class`` below `cli/commands`."""


def commands_of(features: Iterable[Feature]) -> dict[str, EntryPoint]:
    """Return the commands by name, those of some features among them.

    A command is imported when it runs: all together take long.
    """
    places = dict(KERNEL_COMMANDS)
    for feature in features:
        places.update(feature.commands)
    return {name: EntryPoint(name, f"stoker.cli.commands.{places[name]}", GROUP) for name in sorted(places)}


COMMANDS = commands_of(FEATURES)

GROUPS_OVER_API = ("quota", "ring")
OVER_API = frozenset(
    {"service list", "help", "complete", *(name for name in COMMANDS if name.split()[0] in GROUPS_OVER_API)}
)
"""The commands that work over the API, too."""


class ManageApp(App):
    """The program; it prints an error of its user as one line, not as a traceback.

    :param features: the features whose commands it has.
    """

    def __init__(self, features: Iterable[Feature] = FEATURES) -> None:
        self._commands = commands_of(features)
        manager = CommandManager(GROUP)
        manager.commands.update(self._commands)
        super().__init__(description(PROGRAM), VERSION, manager, deferred_help=True)
        self.conf: typing.Any = None

    def build_option_parser(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Return the parser with the option that names configuration files."""
        parser = super().build_option_parser(*args, **kwargs)
        parser.add_argument("--config-file", type=pathlib.Path, action="append", help="file with options")
        parser.add_argument(
            "--url",
            metavar="URL",
            help="work over the API at this address, such as http://stoker.example:8004/v1, in place of the "
            "database, with the OS_* variables or OS_CLOUD; auto: the address of the service catalog",
        )
        parser.epilog = epilog(PROGRAM)
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        """Read the configuration."""
        logging.getLogger("alembic").setLevel(logging.WARNING)  # It logs its import, and each read.
        # The commands that validate the configuration report its faults; over the API none is needed.
        if argv[:1] != ["config"] and self.options.url is None:
            self.conf = options.load([], program="stoker-manage", files=self.options.config_file)

    def run_subcommand(self, argv: list[str]) -> int:
        """Run one command; of a group of commands, such as ``ring``, list them with a line each."""
        group = " ".join(argv[1:] if argv[:1] == ["help"] else argv)
        if lines := self._commands_of(group):
            write_lines(self.stdout, *lines)
            return 0 if argv[:1] == ["help"] else 2
        try:
            self._check_access(argv)
            return int(super().run_subcommand(argv) or 0)
        except (AdminError, DatabaseError, WrongConfiguration) as error:
            write_lines(self.stderr, *f"stoker-manage: {error}".splitlines())
            return 1

    def _check_access(self, argv: list[str]) -> None:
        """Check that a command has the access that it needs.

        :raises AdminError: --url is given, and the command needs the database or the files of its host.
        """
        name = next((name for name in self._commands if argv[: len(name.split())] == name.split()), None)
        if self.options.url is not None and name is not None and name not in OVER_API:
            remote = ", ".join(sorted(OVER_API & self._commands.keys()))
            raise AdminError(
                f"`{name}` does not work over the API: leave out --url, and run it on a host that has the "
                f"configuration and reaches the database. With --url work: {remote}"
            )

    def _commands_of(self, group: str) -> list[str]:
        """Return a line for each command of a group; none: there is no such group."""
        names = [name for name in sorted(self._commands) if name.startswith(f"{group} ")]
        width = max(map(len, names), default=0)
        loaded = {name: self.command_manager.find_command(name.split())[0] for name in names}
        lines = {name: str(factory(self, None).get_description()) for name, factory in loaded.items()}
        return [f"  {name:{width}}  {text.strip().splitlines()[0]}" for name, text in lines.items()]


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    return run_command(lambda: int(ManageApp().run(words)))
