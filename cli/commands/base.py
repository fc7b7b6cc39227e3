"""The parts that all commands of ``stoker-manage`` share."""

import typing

from cliff.command import Command
from oslo_config import cfg


class AdminError(Exception):
    """The command cannot do its task; the text says why, and names a remedy."""


def conf_of(command: Command) -> cfg.ConfigOpts:
    """Return the configuration of the program that a command belongs to."""
    conf: cfg.ConfigOpts = typing.cast(typing.Any, command.app).conf
    return conf
