"""The open database that the commands of ``stoker-manage`` work on."""

from dataclasses import dataclass

from cliff.command import Command
from oslo_config import cfg

from ..db.engine import Database
from .manage_base import conf_of
from .opening import open_database


@dataclass(frozen=True)
class Session:
    """An open database with its configuration."""

    conf: cfg.ConfigOpts
    database: Database
    shard_count: int


def session_of(command: Command) -> Session:
    """Connect, as the program is configured that a command belongs to.

    :raises WrongConfiguration: see `open_database`.
    """
    conf = conf_of(command)
    database, count = open_database(conf)
    return Session(conf, database, count)
