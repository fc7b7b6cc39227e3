"""``stoker-manage import-heat`` and ``export-heat``: move stacks from Heat's database, and back into it."""

import argparse
import os
import pathlib
import typing

import sqlalchemy
from cliff.command import Command

from ...heat_database.crypt import HeatCipher, WrongKey
from ...heat_database.reader import HeatDatabase, Selection, UnfitDatabase
from ...heat_database.report import Disposition, Report
from ...heat_export.run import SCHEMAS, ExportOptions
from ...heat_import.run import CLAIMED_BY, Options
from ...keystone.delegated_auth import KeystoneUnavailable
from ...sealing.sealer import SealError
from ..wiring.heat_export import open_export
from ..wiring.heat_import import open_import
from .base import AdminError, conf_of
from .progress import ProgressLine

KEY_VARIABLE = "HEAT_ENCRYPTION_KEY"
"""The variable of the environment with the key, where no file is named."""
DONE = 0
SOME_STAY = 2
MOST_SHOWN = 200
"""Characters of a database's error that are shown."""


class _HeatCommand(Command):
    """Base of the commands that use Heat's database."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "--database",
            required=True,
            metavar="URL",
            help="Heat's database as SQLAlchemy names it; @FILE: a file that has the URL",
        )
        parser.add_argument(
            "--encryption-key-file",
            type=pathlib.Path,
            metavar="FILE",
            help="file with Heat's auth_encryption_key, such as its configuration file; without this the "
            f"variable {KEY_VARIABLE} has the key",
        )
        parser.add_argument("--project", action="append", default=[], metavar="ID", help="only its stacks")
        parser.add_argument(
            "--stack", action="append", default=[], metavar="NAME|ID", help="only this root stack"
        )
        parser.add_argument("--dry-run", action="store_true", help="store nothing; say what stays, and why")
        parser.add_argument("--report", choices=("text", "json"), default="text", help="form of the report")
        return parser

    def show(self, report: Report, form: str) -> int:
        """Print a report; return 0 if all stacks are moved, 2 if some stay."""
        lines = [report.as_json()] if form == "json" else report.lines()
        self.app.stdout.write("".join(f"{text}\n" for text in lines))
        stays = any(stack.disposition == Disposition.STAYS for stack in report.stacks)
        return SOME_STAY if stays else DONE


class ImportHeat(_HeatCommand):
    """Move stacks from Heat's database, without a call that changes the cloud.

    Heat's engines must be stopped, or its API read-only, but for a --dry-run.  A stack that was moved is
    skipped by a further run, so that an interrupted one is continued.  The exit code is 2 where stacks stay.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--include-deleted", action="store_true", help="stacks that are deleted, too")
        parser.add_argument(
            "--verify", action="store_true", help="say what an update with the same template would change"
        )
        parser.add_argument(
            "--claim",
            action="store_true",
            help="hide moved stacks in Heat's database, as deleted ones are, so that Heat leaves them alone",
        )
        parser.add_argument(
            "--release",
            action="store_true",
            help="take back all claims: Heat has the stacks again",
        )
        return parser

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 0 if all stacks are moved, 2 if some stay."""
        if parsed.claim and parsed.dry_run:
            raise AdminError("--claim marks moved stacks, and --dry-run moves none: leave one of them out")
        heat = HeatDatabase(_engine(_url(parsed.database)), HeatCipher(_key(parsed.encryption_key_file)))
        if parsed.release:
            count = _checked(heat).release(CLAIMED_BY)
            self.app.stdout.write(f"{count} root stacks are Heat's again\n")
            return DONE
        line = ProgressLine(self.app.stderr)
        options = Options(
            Selection(parsed.project, parsed.stack, with_deleted=parsed.include_deleted),
            dry_run=parsed.dry_run,
            verifies=parsed.verify,
            claims=parsed.claim,
        )
        try:
            with open_import(
                conf_of(self),
                _checked(heat),
                lambda done, total: line.show(f"import: {done} of {total} root stacks"),
            ) as run:
                report = run.run(options)
        except KeystoneUnavailable as error:
            raise AdminError(f"Keystone does not say which trusts Stoker may use: {error}") from error
        finally:
            line.clear()
        return self.show(report, parsed.report)


class ExportHeat(_HeatCommand):
    """Move stacks into Heat's database, without a call that changes the cloud: the way back from Stoker.

    Stoker's daemons and Heat's engines must be stopped, but for a --dry-run.  Stacks that Heat's database has
    are brought to what Stoker has now.  A further run changes only what is not there yet, so that an
    interrupted one is continued.  The exit code is 2 where stacks stay.
    """

    def take_action(self, parsed: typing.Any) -> int:
        """Run the command; return 0 if all stacks are moved, 2 if some stay."""
        cipher = HeatCipher(_key(parsed.encryption_key_file))
        heat = _checked(HeatDatabase(_engine(_url(parsed.database)), cipher))
        try:
            heat.check_schema(SCHEMAS)
            heat.check_key()
        except UnfitDatabase as error:
            raise AdminError(f"--database: {error}") from error
        except WrongKey as error:
            raise AdminError(f"--encryption-key-file: {error}: give Heat's auth_encryption_key") from error
        line = ProgressLine(self.app.stderr)
        options = ExportOptions(Selection(parsed.project, parsed.stack), dry_run=parsed.dry_run)
        try:
            with open_export(
                conf_of(self),
                heat,
                cipher,
                lambda done, total: line.show(f"export: {done} of {total} root stacks"),
            ) as run:
                report = run.run(options)
        except KeystoneUnavailable as error:
            raise AdminError(f"Keystone does not say whose trusts Stoker has: {error}") from error
        except SealError as error:
            raise AdminError(
                f"a software config cannot be opened, name its key in [secrets]: {error}"
            ) from error
        except sqlalchemy.exc.DBAPIError as error:
            text = str(error.orig)[:MOST_SHOWN]
            raise AdminError(f"--database: {text}; run this again to continue") from error
        finally:
            line.clear()
        return self.show(report, parsed.report)


def _checked(heat: HeatDatabase) -> HeatDatabase:
    """Return the database, if it can be used.

    :raises AdminError: it is none of Heat's, or cannot be reached.
    """
    try:
        heat.check()
    except UnfitDatabase as error:
        raise AdminError(f"--database: {error}") from error
    except sqlalchemy.exc.DBAPIError as error:
        raise AdminError(f"--database: {str(error.orig)[:MOST_SHOWN]}") from error
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


def _engine(url: str) -> sqlalchemy.Engine:
    try:
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
