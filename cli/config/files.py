"""The configuration files of a program.

They are those on the command line (``--config-file``), else the one in the environment variable
STOKER_CONFIG_FILE, else those that oslo.config finds.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence

from oslo_config import cfg

PROJECT = "stoker"
VARIABLE = "STOKER_CONFIG_FILE"
"""All programs read it: a program under a WSGI server has no command line."""
PLACES = ("~/.stoker", "~", "/etc/stoker", "/etc")
"""The folders that oslo.config searches: oslo_config.cfg.find_config_files."""


def named(environment: Mapping[str, str] = os.environ) -> list[pathlib.Path]:
    """Return the file that the environment names, if it names one."""
    file = environment.get(VARIABLE)
    return [pathlib.Path(file)] if file else []


def defaults() -> list[str] | None:
    """Return the files to read where the command line names none; None: those that oslo.config finds."""
    return [str(path) for path in named()] or None


def found(program: str) -> Sequence[pathlib.Path]:
    """Return the files that a program reads whose command line names none."""
    return named() or [pathlib.Path(path) for path in cfg.find_config_files(PROJECT, program)]


def missing(conf: cfg.ConfigOpts) -> str | None:
    """Return where a configuration was searched; None: there is one, in a file or in the environment."""
    connection = conf.get_location("connection", "database")
    is_set = connection is not None and connection.location is not cfg.Locations.opt_default
    if conf.config_file or conf.config_dir or is_set:
        return None
    names = " or ".join(dict.fromkeys([f"{PROJECT}.conf", f"{conf.prog}.conf"]))
    places = ", ".join(str(pathlib.Path(place).expanduser()) for place in PLACES)
    return (
        f"no configuration was found: searched for {names} in {places}; name another file by --config-file "
        f"or by the environment variable {VARIABLE}"
    )


def write_private(path: pathlib.Path, text: str) -> None:
    """Write a new file that its owner alone may read: it has passwords or keys.

    :raises OSError: it is there already, or cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
