"""``stoker-status upgrade check``: whether this release can run on what is there."""

import argparse
import sys

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip

from ..db import schema
from ..db.engine import Database
from . import options
from .wiring import WrongConfiguration, make_sealer, make_timing

READY, FAILED = 0, 2


def checks(conf: cfg.ConfigOpts) -> list[tuple[str, str | None]]:
    """(what is checked, what is wrong or None)."""
    found: list[tuple[str, str | None]] = []
    for name, make in (("sealing keys", make_sealer), ("membership intervals", make_timing)):
        try:
            make(conf)
            found.append((name, None))
        except WrongConfiguration as error:
            found.append((name, str(error)))
    database = Database(conf.database.connection)
    at, needed = schema.current(database), schema.newest()
    wrong = None if at == needed else f"it is at {at}, {needed} is needed: run stoker-manage db sync"
    found.append(("database schema", wrong))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 all is well, 2 something must be done first (as oslo.upgradecheck)."""
    parser = argparse.ArgumentParser(prog="stoker-status")
    parser.add_argument("area", choices=["upgrade"])
    parser.add_argument("action", choices=["check"])
    parser.add_argument("--config-file", action="append", default=[])
    wanted = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    files = [argument for file in wanted.config_file for argument in ("--config-file", file)]
    results = checks(options.load(files, program="stoker-status"))
    for name, wrong in results:
        print(f"{name}: {'ok' if wrong is None else wrong}")
    return FAILED if any(wrong for _, wrong in results) else READY
