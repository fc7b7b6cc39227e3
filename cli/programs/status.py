"""``stoker-status upgrade check``: the check of whether this release can run on an installation."""

import argparse
import pathlib
import sys
import time
from collections.abc import Callable, Mapping

from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result

from ...db import conductors
from ...db.errors import DatabaseError
from ...db.schema import revisions
from ...db.schema.revisions import Fit
from ...rpc.contract import VERSION, parsed, understood
from ...rpc.level import AUTO
from ...sealing.rotation import Rotation
from ...template.sandbox import system_calls
from ..commands.config import problems
from ..config.about import description, epilog
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from ..daemon.main_loop import run_command
from ..wiring.database import open_database
from ..wiring.secrets import make_sealer
from ..wiring.servers import SERVERS, answers, optional_servers

PROGRAM = "stoker-status"
DONE = Result(Code.SUCCESS)
NOT_ASKED = Result(Code.FAILURE, "the configuration cannot be read")


class Checks(upgradecheck.UpgradeCommands):
    """The conditions under which the daemons of this release may start.

    :param files: the files of the configuration; None: the files that the daemons would find.
    """

    def __init__(self, files: list[pathlib.Path] | None) -> None:
        self._files = files
        self._conf: cfg.ConfigOpts | None = None

    def configuration(self) -> Result:
        """Report wrong and unknown options as failures, deprecated ones as warnings."""
        findings, self._conf = problems(self._files)
        faults = "; ".join(f"{p.where}: {p.what}" if p.where else p.what for p in findings)
        if any(problem.serious for problem in findings):
            return Result(Code.FAILURE, faults)
        return Result(Code.WARNING, faults) if findings else DONE

    def _server(self, name: str) -> Result:
        if self._conf is None:
            return NOT_ASKED
        wrong = answers(self._conf, *SERVERS[name])
        return DONE if wrong is None else Result(Code.FAILURE, wrong)

    def database(self) -> Result:
        """Check that the database answers, at a schema that this release works on."""
        answered = self._server("database")
        return answered if answered.code == Code.FAILURE else self._on_database(_schema)

    def message_bus(self) -> Result:
        """Check that the message bus answers."""
        return self._server("message bus")

    def coordination(self) -> Result:
        """Check that the coordination backend answers."""
        return self._server("coordination backend")

    def others(self) -> Result:
        """Check that the accounts at Keystone get tokens, and that all else that is configured answers."""
        if self._conf is None:
            return NOT_ASKED
        conf = self._conf
        faults = [answers(conf, option, check) for option, check in optional_servers(conf).values()]
        wrong = "; ".join(fault for fault in faults if fault is not None)
        return Result(Code.FAILURE, wrong) if wrong else DONE

    def sealing_keys(self) -> Result:
        """Check that the configured keys open all sealed values."""
        return self._on_database(_keys)

    def conductors(self) -> Result:
        """Check that this release and the running conductors understand each other's messages."""
        return self._on_database(_conductors)

    def system_calls(self) -> Result:
        """Report whether the system filters the calls of the helpers that evaluate expressions.

        It is no fault where it does not: the limits of helpers hold there, too.
        """
        reason = system_calls.why_unfiltered()
        return Result(Code.SUCCESS, f"not filtered: {reason}" if reason else "filtered (seccomp)")

    def _on_database(self, check: Callable[[cfg.ConfigOpts], Result]) -> Result:
        if self._conf is None:
            return NOT_ASKED
        try:
            return check(self._conf)
        except (DatabaseError, WrongConfiguration) as error:
            return Result(Code.FAILURE, str(error))

    _upgrade_checks = (
        ("configuration", configuration),
        ("database and its schema", database),
        ("message bus", message_bus),
        ("coordination backend", coordination),
        ("accounts at Keystone and other servers", others),
        ("sealing keys", sealing_keys),
        ("conductors that run", conductors),
        ("system calls of expressions", system_calls),
    )


def _schema(conf: cfg.ConfigOpts) -> Result:
    at = open_database(conf)[0].read(revisions.current)
    fit = revisions.fit_of(at)
    if fit == Fit.EXPANDED:
        text = "when all daemons are of this release, run `stoker-manage db sync --contract`"
        return Result(Code.WARNING, f"the database is at {at}: {text}")
    if fit == Fit.AHEAD:
        return Result(
            Code.WARNING, f"the database is at {at}, of the next release: upgrade all daemons to it"
        )
    return DONE


def _keys(conf: cfg.ConfigOpts) -> Result:
    database, _ = open_database(conf)
    sealer = make_sealer(conf)
    counts = Rotation(database, sealer, clock=database.clock, sleep=time.sleep).count()
    missing = sorted(counts.held.keys() - set(sealer.fingerprints))
    text = [f"key {key} is not among [secrets] key, and has sealed what is stored" for key in missing]
    text += [f"{place}: a value cannot be opened by the key that it names" for place in counts.broken]
    return Result(Code.FAILURE, "; ".join(text)) if text else DONE


def _conductors(conf: cfg.ConfigOpts) -> Result:
    database, _ = open_database(conf)
    rows = conductors.may_rejoin(database.read(conductors.list_all), database.clock())
    return judged({c.host: c.rpc_version for c in rows}, pin=Settings(conf).upgrade.pin)


def judged(spoken: Mapping[str, str], *, pin: str) -> Result:
    """Compare the versions of messages.

    :param spoken: the versions of the running conductors, by host.
    :param pin: the value of [upgrade_levels] conductor.
    """
    others = {host: version for host, version in spoken.items() if version != VERSION}
    text = ", ".join(f"{host} speaks {version or 'none'}" for host, version in sorted(others.items()))
    pinned = f"[upgrade_levels] conductor = {pin}"
    if any(parsed(version)[0] != parsed(VERSION)[0] for version in others.values()):
        return Result(Code.FAILURE, f"this release speaks RPC {VERSION}, {text}: stop them first")
    if pin != AUTO and parsed(pin) > parsed(understood(spoken.values())) and others:
        return Result(Code.FAILURE, f"{pinned}, but {text}: they refuse what is newer; set {AUTO}")
    if others:
        return Result(Code.WARNING, f"this release speaks RPC {VERSION}, {text}: they work together")
    if pin != AUTO and spoken:
        left = f"{pinned} is still set, although all running services speak {VERSION}: take it away"
        return Result(Code.WARNING, left)
    return DONE


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=description(PROGRAM), epilog=epilog(PROGRAM))
    parser.add_argument("area", choices=["upgrade"], help="what to check")
    parser.add_argument("action", choices=["check"], help="lists what prevents this release from running")
    parser.add_argument("--config-file", type=pathlib.Path, action="append", help="file with options")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit code is 0 without findings, 1 for a warning, 2 for a failure."""
    options = make_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    return run_command(lambda: _shown(Checks(options.config_file), as_json=options.json))


def _shown(checks: Checks, *, as_json: bool) -> int:
    """Let the library run and print the checks; it reads --json from a configuration of its own."""
    conf = cfg.ConfigOpts()
    upgradecheck.register_cli_options(conf, checks)
    conf(["upgrade", "check", *(["--json"] if as_json else [])], project="stoker", default_config_files=[])
    upgradecheck.CONF = conf
    return int(upgradecheck.run(conf))
