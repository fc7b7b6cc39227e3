"""The parts that all commands of ``stoker-manage`` share."""

import datetime
import typing

from cliff.command import Command
from oslo_config import cfg


class AdminError(Exception):
    """The command cannot do what was asked; the text says why, and what would be right."""


def describe_span(seconds: float) -> str:
    """Return a duration for people: ``3 s``, ``5 min``, ``2 h``, ``4 d``.

    One unit is enough here, and scripts compare the texts: no library writes them for us.
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def describe_age(seconds: float) -> str:
    """Return an age for people: ``3 s ago``."""
    return f"{describe_span(seconds)} ago"


def describe_moment(moment: float, now: float) -> str:
    """Return a moment in UTC and its distance: ``14:00:03 UTC (5 min ago)``, ``15:00:03 UTC (in 2 h)``."""
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    same = at.date() == datetime.datetime.fromtimestamp(now, datetime.UTC).date()
    text = at.strftime("%H:%M:%S UTC" if same else "%Y-%m-%d %H:%M:%S UTC")
    if moment <= now:
        return f"{text} ({describe_age(now - moment)})"
    return f"{text} (in {describe_span(moment - now)})"


def conf_of(command: Command) -> cfg.ConfigOpts:
    """Return the configuration of the program that a command belongs to."""
    conf: cfg.ConfigOpts = typing.cast(typing.Any, command.app).conf
    return conf
