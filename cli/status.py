"""``stoker-status upgrade check``: whether this release can run on what is there."""

import argparse
import sys
from collections.abc import Callable

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip

from . import options
from .opening import check_backend, make_bus, make_sealer, open_database
from .options import WrongConfiguration
from .wiring import make_timing

READY, FAILED = 0, 2


def checks(conf: cfg.ConfigOpts) -> list[tuple[str, str | None]]:
    """(what is checked, what is wrong or None)."""
    found: list[tuple[str, str | None]] = []
    tried: list[tuple[str, Callable[[cfg.ConfigOpts], object]]] = [
        ("sealing keys", make_sealer),
        ("membership intervals", make_timing),
        ("coordination backend", check_backend),
        ("message bus", make_bus),
        ("database", open_database),
    ]
    for name, make in tried:
        try:
            make(conf)
            found.append((name, None))
        except WrongConfiguration as error:
            found.append((name, str(error)))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 all is well, 2 something must be done first (as oslo.upgradecheck)."""
    parser = argparse.ArgumentParser(prog="stoker-status")
    parser.add_argument("area", choices=["upgrade"])
    parser.add_argument("action", choices=["check"])
    parser.add_argument("--config-file", action="append", default=[])
    wanted = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    files = [argument for file in wanted.config_file for argument in ("--config-file", file)]
    try:
        results = checks(options.load(files, program="stoker-status"))
    except WrongConfiguration as error:
        results = [("configuration", str(error))]
    for name, wrong in results:
        print(f"{name}: {'ok' if wrong is None else wrong}")
    return FAILED if any(wrong for _, wrong in results) else READY
