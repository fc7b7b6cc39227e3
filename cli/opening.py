"""Reaching the servers that the configuration names; what is wrong is told with the option."""

import oslo_db.exception
import oslo_messaging
import sqlalchemy
import tooz
from oslo_config import cfg

from ..db import schema
from ..db import settings as installation
from ..db.engine import Database
from ..db.errors import ShardCountMismatch, Unavailable
from ..ring.group import make_coordinator
from ..rpc.bus import Bus, open_bus
from .options import WrongConfiguration

CONNECTION = "[database] connection"
DATABASE_ERRORS = (Unavailable, sqlalchemy.exc.DBAPIError, oslo_db.exception.DBError)


def connect(conf: cfg.ConfigOpts) -> Database:
    """The database, of whatever version; whether it answers is not asked.

    :raises WrongConfiguration: the URL is none, or its driver is not installed.
    """
    try:
        return Database(conf.database.connection, pool_size=conf.database.pool_size)
    except (sqlalchemy.exc.ArgumentError, ImportError, *DATABASE_ERRORS) as error:
        raise WrongConfiguration(f"{CONNECTION}: {error}") from error


def open_database(conf: cfg.ConfigOpts) -> tuple[Database, int]:
    """The database, at this release's version, and its shard count.

    :raises WrongConfiguration: it is at another one, cannot be reached, or has another shard count.
    """
    database = connect(conf)
    try:
        at = schema.current(database)
    except DATABASE_ERRORS as error:
        raise WrongConfiguration(f"{CONNECTION}: the database cannot be used: {error}") from error
    if at != (needed := schema.newest()):
        found = "was never set up" if at is None else f"is at version {at}"
        raise WrongConfiguration(
            f"{CONNECTION}: the database {found}, this release needs {needed}: run `stoker-manage db sync`"
        )
    wanted = conf.stacks.shard_count
    try:
        return database, database.write(lambda conn: installation.shard_count(conn, wanted))
    except ShardCountMismatch as error:
        raise WrongConfiguration(f"[stacks] shard_count: {error}") from error


def make_bus(conf: cfg.ConfigOpts) -> Bus:
    """:raises WrongConfiguration: the URL is none."""
    try:
        return open_bus(conf, conf.transport_url)
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as error:
        raise WrongConfiguration(f"transport_url: {error}") from error


def check_backend(conf: cfg.ConfigOpts) -> None:
    """:raises WrongConfiguration: there is no driver for the backend; whether it answers is not asked."""
    try:
        make_coordinator(conf.coordination.backend_url, b"check")
    except (tooz.ToozError, RuntimeError, ImportError, ValueError) as error:
        raise WrongConfiguration(f"[coordination] backend_url: {error}") from error
