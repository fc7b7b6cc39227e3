"""``stoker-manage import-heat`` and ``export-heat``: move stacks from Heat, and back into its database."""

import argparse
import functools
import os
import pathlib
import typing
from collections.abc import Callable
from contextlib import AbstractContextManager

import sqlalchemy
import yaml
from cliff.command import Command
from oslo_db import exception as oslo_errors

from ...features.moves.heat.border import text_of
from ...features.moves.heat.cipher import HeatCipher, WrongKey
from ...features.moves.heat.reader import HeatDatabase, UnfitDatabase
from ...features.moves.heat.report import Disposition, Report, ShowProgress
from ...features.moves.heat.selection import Selection, WrongSelection
from ...features.moves.inward.api_reader import HeatRefusal
from ...features.moves.inward.run import CLAIMED_BY, HeatSource, Options
from ...features.moves.outward.run import SCHEMAS, ExportOptions
from ...keystone.delegated_auth import KeystoneUnavailable
from ...observe.terminal import write_lines
from ...shapes import Json
from ..wiring.heat_api import open_heat_api
from ..wiring.heat_import import open_import
from ..wiring.moves import open_export
from ..wiring.operator_api import NoCredentials
from .base import AdminError, conf_of
from .progress import ProgressLine

KEY_VARIABLE = "HEAT_ENCRYPTION_KEY"
"""The variable of the environment with the key, where no file is named."""
DONE = 0
SOME_STAY = 2
T = typing.TypeVar("T", contravariant=True)
DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql"}
"""Drivers that Stoker installs, by the databases."""


class _Run(typing.Protocol[T]):
    """A move of stacks in one direction, with options of the type T."""

    report: Report

    def run(self, options: T) -> Report:
        """Move the stacks."""


class _HeatCommand(Command):
    """Base of the commands that use Heat."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        self._add_source(parser)
        parser.add_argument(
            "--encryption-key-file",
            type=pathlib.Path,
            metavar="FILE",
            help="file with Heat's auth_encryption_key, such as its configuration file; without this the "
            f"variable {KEY_VARIABLE} has the key",
        )
        parser.add_argument("--project", action="append", default=[], metavar="ID", help="only its stacks")
        parser.add_argument(
            "--stack",
            action="append",
            default=[],
            metavar="ID|NAME|PROJECT/NAME",
            help="only this root stack; a name that stacks of several projects have needs its project",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="store nothing; report the stacks that cannot be moved, with the reason",
        )
        parser.add_argument("--report", choices=("text", "json"), default="text", help="format of the report")
        return parser

    def _add_source(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments that say where Heat's stacks are."""
        _add_database(parser, required=True)

    def move(
        self,
        verb: str,
        opened: Callable[[ShowProgress], AbstractContextManager[_Run[T]]],
        options: T,
        form: str,
    ) -> int:
        """Move stacks, and show how far that is; return 0 if all stacks are moved, 2 if some stay.

        :param opened: connects to Stoker's database, and makes the run.
        :raises AdminError: the selection is wrong, or Keystone or a database ends the run.
        """
        line = ProgressLine(self.app.stderr)
        try:
            with opened(lambda done, total: line.count(verb, done, "root stacks", total)) as run:
                return self._reported(run, options, line, form)
        except KeystoneUnavailable as error:
            raise AdminError(f"Keystone does not say which trusts Stoker has: {error}") from error
        finally:
            line.clear()

    def _reported(self, run: _Run[T], options: T, line: ProgressLine, form: str) -> int:
        """Move stacks, and print the report, of what was moved, too, where an error ends the run."""
        try:
            run.run(options)
        except WrongSelection as error:
            raise AdminError(str(error)) from error
        except BaseException as error:
            line.clear()
            self.show(run.report, form)
            if isinstance(error, sqlalchemy.exc.SQLAlchemyError):
                raise AdminError(f"--database: {text_of(error)}; run this again to continue") from error
            if isinstance(error, oslo_errors.DBError):
                raise AdminError(f"[database]: {text_of(error)}; run this again to continue") from error
            raise
        line.clear()
        return self.show(run.report, form)

    def show(self, report: Report, form: str) -> int:
        """Print a report; return 0 if all stacks are moved, 2 if some stay."""
        lines = report.as_json().splitlines() if form == "json" else report.lines()
        write_lines(self.app.stdout, *lines)
        stays = any(stack.disposition == Disposition.STAYS for stack in report.stacks)
        return SOME_STAY if stays else DONE


class ImportHeat(_HeatCommand):
    """Move stacks from Heat, without a call that changes the cloud.

    They are read from Heat's database, or those of one project by Heat's API.  Heat's engines must be
    stopped, or its API read-only, but for a --dry-run.  A stack that was moved is skipped by a further run,
    so that an interrupted one is continued.  The exit code is 2 where stacks stay.
    """

    def _add_source(self, parser: argparse.ArgumentParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        _add_database(source, required=False)
        source.add_argument(
            "--heat",
            metavar="URL",
            help="root of Heat's API, such as http://heat.example:8004/v1; auto: that of the service "
            "catalog. The stacks are those of the project of the OS_* variables, or of OS_CLOUD",
        )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--parameter",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="value of a hidden parameter that Heat's API does not show; others may see it in the list "
            "of processes",
        )
        parser.add_argument(
            "-e",
            "--environment",
            type=pathlib.Path,
            metavar="FILE",
            help="environment whose parameters are values of hidden parameters",
        )
        parser.add_argument("--include-deleted", action="store_true", help="deleted stacks, too")
        parser.add_argument(
            "--verify", action="store_true", help="report what an update with the same template would change"
        )
        parser.add_argument(
            "--claim",
            action="store_true",
            help="hide moved stacks in Heat's database, as deleted ones are, so that Heat leaves them alone",
        )
        parser.add_argument(
            "--release",
            action="store_true",
            help="release all claims, so that Heat has the stacks again",
        )
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 0 if all stacks are moved, 2 if some stay."""
        if parsed.claim and parsed.dry_run:
            raise AdminError("--claim marks moved stacks, and --dry-run moves none: leave one of them out")
        if parsed.heat is None:
            heat = _database(parsed)
            if parsed.release:
                count = heat.release(CLAIMED_BY)
                write_lines(self.app.stdout, f"{count} root stacks are Heat's again")
                return DONE
            _check_key(heat, None)
            return self._import(heat, parsed)
        _check_for_api(parsed)
        try:
            api = open_heat_api(parsed.heat, _parameters(parsed))
            _check_project(parsed.project, api.project_id)
            return self._import(api, parsed)
        except (NoCredentials, HeatRefusal) as error:
            raise AdminError(f"--heat: {error}") from error

    def _import(self, heat: HeatSource, parsed: typing.Any) -> int:
        """Move what is selected, and show the report; return 0 if all stacks are moved, 2 if some stay."""
        options = Options(
            Selection(parsed.project, parsed.stack, with_deleted=parsed.include_deleted),
            dry_run=parsed.dry_run,
            verifies=parsed.verify,
            claims=parsed.claim,
        )
        return self.move(
            "import", functools.partial(open_import, conf_of(self), heat), options, parsed.report
        )


class ExportHeat(_HeatCommand):
    """Move stacks into Heat's database, without a call that changes the cloud: the way back from Stoker.

    Stoker's daemons and Heat's engines must be stopped, but for a --dry-run.  Stacks that Heat's database has
    are brought to what Stoker has now.  A further run changes only what is not there yet, so that an
    interrupted one is continued.  The exit code is 2 where stacks stay.
    """

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 0 if all stacks are moved, 2 if some stay."""
        cipher = HeatCipher(_key(parsed.encryption_key_file))
        heat = _open_database(parsed.database, cipher)
        try:
            heat.check_schema(SCHEMAS)
        except UnfitDatabase as error:
            raise AdminError(f"--database: {error}") from error
        _check_key(heat, cipher)
        options = ExportOptions(Selection(parsed.project, parsed.stack), dry_run=parsed.dry_run)
        opened = functools.partial(open_export, conf_of(self), heat, cipher)
        return self.move("export", opened, options, parsed.report)


def _add_database(parser: argparse._ActionsContainer, *, required: bool) -> None:
    parser.add_argument(
        "--database",
        required=required,
        metavar="URL",
        help="Heat's database as SQLAlchemy names it; @FILE: a file that has the URL",
    )


def _database(parsed: typing.Any) -> HeatDatabase:
    """Return the database that was named.

    :raises AdminError: an option is only for the API, or the database cannot be used.
    """
    if parsed.parameter or parsed.environment is not None:
        raise AdminError("--parameter and --environment are for --heat: a database has hidden values, too")
    return _open_database(parsed.database, HeatCipher(_key(parsed.encryption_key_file)))


def _check_key(heat: HeatDatabase, cipher: HeatCipher | None) -> None:
    """Check the key before any stack is moved.

    :param cipher: the cipher, if values are to be encrypted, too.
    :raises AdminError: there is none, or Heat has another one.
    """
    try:
        heat.check_key()
        if cipher is not None:
            cipher.encrypt("")
    except WrongKey as error:
        raise AdminError(f"--encryption-key-file: {error}: give Heat's auth_encryption_key") from error


def _check_for_api(parsed: typing.Any) -> None:
    """Check the options for the API.

    :raises AdminError: one of them is only for a database, or is for a stack and none is named.
    """
    for option in ("claim", "release", "include_deleted", "encryption_key_file"):
        if getattr(parsed, option):
            raise AdminError(f"--{option.replace('_', '-')} is for --database: Heat's API has no such thing")
    if (parsed.parameter or parsed.environment is not None) and len(parsed.stack) != 1:
        raise AdminError("--parameter and --environment have values of one stack: name it by --stack")


def _check_project(names: typing.Sequence[str], project_id: str) -> None:
    """Check that the projects that were named are that of the credentials.

    :raises AdminError: one of them is another.
    """
    for name in names:
        if name != project_id:
            raise AdminError(f"--project {name}: the credentials are for {project_id}; set OS_PROJECT_ID")


def _parameters(parsed: typing.Any) -> dict[str, Json]:
    """Return the values of hidden parameters; those of --parameter count before those of the file.

    :raises AdminError: the file cannot be read, or a value has another form.
    """
    values: dict[str, Json] = {}
    if parsed.environment is not None:
        try:
            document = yaml.safe_load(parsed.environment.read_text())
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise AdminError(f"--environment {parsed.environment}: {type(error).__name__}") from error
        section = document.get("parameters") if isinstance(document, dict) else None
        if not isinstance(section, dict) or len(document) != 1:
            raise AdminError(f"--environment {parsed.environment}: it must have parameters, and nothing else")
        values.update(section)
    for text in parsed.parameter:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise AdminError("--parameter must be NAME=VALUE")
        values[name] = value
    return values


def _open_database(url: str, cipher: HeatCipher) -> HeatDatabase:
    """Return the database, if it can be used.

    :param url: its URL, or ``@`` and the name of the file that has it.
    :raises AdminError: it is none of Heat's, or cannot be reached.
    """
    heat = HeatDatabase(_engine(_url(url)), cipher)
    try:
        heat.check()
    except UnfitDatabase as error:
        raise AdminError(f"--database: {error}") from error
    except sqlalchemy.exc.DBAPIError as error:
        raise AdminError(f"--database: {text_of(error)}") from error
    return heat


def _url(text: str) -> str:
    """Return the URL, or that in the file that is named.

    :raises AdminError: the file cannot be read.
    """
    if not text.startswith("@"):
        return text
    try:
        return pathlib.Path(text[1:]).read_text().strip()
    except OSError as error:
        raise AdminError(f"--database: {error}") from error


def _engine(text: str) -> sqlalchemy.Engine:
    """Return the engine of a URL as Heat's configuration has it, by a driver that is installed here.

    :raises AdminError: it is no URL, or no driver is installed.
    """
    try:
        url = sqlalchemy.make_url(text)
        driver = DRIVERS.get(url.get_backend_name())
        try:
            url.get_dialect().import_dbapi()
        except ImportError:
            url = url if driver is None else url.set(drivername=driver)
        # The rows hold secrets, and errors would show them.
        return sqlalchemy.create_engine(url, hide_parameters=True)
    except (sqlalchemy.exc.ArgumentError, ImportError) as error:
        raise AdminError(f"--database: {error}") from error


def _key(file: pathlib.Path | None) -> str | None:
    """Return Heat's key; None: none was given.

    :raises AdminError: the file cannot be read, or has no key.
    """
    if file is None:
        return os.environ.get(KEY_VARIABLE)
    try:
        text = file.read_text()
    except OSError as error:
        raise AdminError(f"--encryption-key-file: {error}") from error
    lines = [line.strip("\r") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in lines:
        name, separator, value = line.partition("=")
        if separator and name.strip() == "auth_encryption_key":
            return value.strip()
    if len(lines) == 1:
        return lines[0].strip()
    raise AdminError(f"--encryption-key-file: {file} has no auth_encryption_key")
