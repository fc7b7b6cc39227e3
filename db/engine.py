"""Connections and transactions."""

import logging
import random
import time
import typing
from collections.abc import Callable

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from oslo_db.sqlalchemy import engines, exc_filters
from sqlalchemy.engine import Connection, Engine, make_url

from .errors import Unavailable

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")

_WRITE = "stoker_write"


class Database:
    """Runs functions in transactions, and runs them again where that is right.

    READ COMMITTED on PostgreSQL and MariaDB.  SQLite gets WAL, so that readers never wait, and its one
    writer begins with BEGIN IMMEDIATE, so that two writers queue instead of failing half-way.

    :param url: SQLAlchemy URL: ``sqlite:////path``, ``postgresql+psycopg://…`` or ``mysql+pymysql://…``.
    :param pool_size: connections kept open; each thread in a transaction takes one.
    :param tries: how often a transaction is run before it is given up.
    :param sleep: waits between tries (seconds); the simulation brings its own.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        tries: int = 12,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self._tries = tries
        self._sleep = sleep
        self._engine = _make_engine(url, pool_size)

    @property
    def engine(self) -> Engine:
        """For migrations and tests."""
        return self._engine

    @property
    def dialect(self) -> str:
        """``sqlite``, ``postgresql`` or ``mysql`` (MariaDB too)."""
        return self._engine.dialect.name

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction that changes nothing.

        :raises Unavailable: the database does not answer.
        """
        return self._run(work, write=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction.  After a deadlock or a lost connection it is run again from its
        start, so it must not change anything but the database.

        :raises Unavailable: the database does not answer.
        """
        return self._run(work, write=True)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _run(self, work: Callable[[Connection], T], *, write: bool) -> T:
        for attempt in range(1, self._tries + 1):
            try:
                return self._once(work, write=write)
            except (oslo_errors.DBDeadlock, oslo_errors.DBConnectionError) as error:
                if attempt == self._tries:
                    raise Unavailable(f"The database gave up after {attempt} tries: {error}") from error
                LOG.debug("Transaction is run again after try %d: %s", attempt, error)
                self._sleep(random.uniform(0.5, 1.0) * min(1.0, 0.005 * 2**attempt))
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], T], *, write: bool) -> T:
        with self._engine.connect() as conn:
            options = conn.execution_options(**{_WRITE: write})
            with options.begin():
                return work(options)


def _make_engine(url: str, pool_size: int) -> Engine:
    if make_url(url).get_backend_name() == "sqlite":
        return _sqlite_engine(url, pool_size)
    engine = engines.create_engine(
        url,
        max_pool_size=pool_size,
        max_overflow=pool_size,
        max_retries=3,
        retry_interval=1,
        connection_recycle_time=1800,
        sqlite_synchronous=False,
        mysql_sql_mode="TRADITIONAL",
    )
    committed: Engine = engine.execution_options(isolation_level="READ COMMITTED")
    return committed


def _sqlite_engine(url: str, pool_size: int) -> Engine:
    # oslo.db's own engine begins every transaction deferred; only its error classes are taken.
    engine = sa.create_engine(url, pool_size=pool_size, max_overflow=pool_size)
    exc_filters.register_engine(engine)

    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # The driver's own transaction handling begins too late; SQLAlchemy's "begin" does it below.
        dbapi.isolation_level = None
        dbapi.execute("PRAGMA journal_mode=WAL")
        dbapi.execute("PRAGMA synchronous=NORMAL")
        dbapi.execute("PRAGMA busy_timeout=30000")

    @sa.event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        write = conn.get_execution_options().get(_WRITE, True)
        conn.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
