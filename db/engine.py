"""Connections and transactions."""

import enum
import logging
import random
import time
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from oslo_db.sqlalchemy import exc_filters
from sqlalchemy.engine import Connection, Engine, make_url

from . import notices
from .errors import Unavailable

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")

_WRITE = "stoker_write"
_SERIALIZATION_FAILURE = "40001"
_INSUFFICIENT_RESOURCES = "53"
"""Class of PostgreSQL's codes: disk full, out of memory, too many connections."""
_MARIADB_FULL = (1021, 1114)
"""ER_DISK_FULL, ER_RECORD_FILE_FULL."""
RECYCLE = 1800.0
"""Seconds after which an idle connection is replaced, before a firewall forgets it."""


class Trouble(enum.StrEnum):
    """What may become of a transaction."""

    AGAIN = "again"  #: it is run again
    GIVEN_UP = "given up"  #: the database does not answer


class _TryAgain(Exception):
    """The transaction certainly did not take place."""


class Database:
    """Runs functions in transactions, and runs them again where that is right.

    READ COMMITTED on PostgreSQL and MariaDB.  SQLite gets WAL, so that readers never wait, and its one
    writer begins with BEGIN IMMEDIATE, so that two writers queue instead of failing half-way.

    It connects when it is first used, and again whenever that is needed.

    :param url: SQLAlchemy URL: ``sqlite:////path``, ``postgresql+psycopg://…`` or ``mysql+pymysql://…``.
    :param pool_size: connections kept open; each thread in a transaction takes one.
    :param tries: how often a transaction is run before it is given up.
    :param sleep: waits between tries (seconds); the simulation brings its own.
    :param listener: told what each transaction has made true, once it is committed; None: nobody listens.
    :param troubled: told of each transaction that does not take place at once; must not block, nor raise.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        tries: int = 12,
        sleep: Callable[[float], None] = time.sleep,
        listener: notices.Listener | None = None,
        troubled: Callable[[Trouble], None] = lambda trouble: None,
    ) -> None:
        self.url = url
        self._tries = tries
        self._sleep = sleep
        self._listener = listener
        self._troubled = troubled
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

        It is not run again where the connection was lost during the commit: then it may have taken place.

        :raises Unavailable: the database does not answer.
        """
        return self._run(work, write=True)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _run(self, work: Callable[[Connection], T], *, write: bool) -> T:
        try:
            return self._tried(work, write=write)
        except Unavailable:
            self._troubled(Trouble.GIVEN_UP)
            raise

    def _tried(self, work: Callable[[Connection], T], *, write: bool) -> T:
        for attempt in range(1, self._tries + 1):
            try:
                return self._once(work, write=write)
            except _TryAgain as error:
                cause = error.__cause__
                if attempt == self._tries:
                    raise Unavailable(f"The database gave up after {attempt} tries: {cause}") from cause
                self._troubled(Trouble.AGAIN)
                LOG.debug("Transaction is run again after try %d: %s", attempt, cause)
                self._sleep(random.uniform(0.5, 1.0) * min(1.0, 0.005 * 2**attempt))
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], T], *, write: bool) -> T:
        with self._connection(write=write) as conn, _repeatable():
            told = notices.gathering(conn) if write and self._listener else []
            transaction = conn.begin()
            try:
                result = work(conn)
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except oslo_errors.DBConnectionError as error:
                if write:
                    raise Unavailable(f"The connection was lost during a commit: {error}") from error
                raise
            if told and self._listener:
                self._listener(told)
            return result

    @contextmanager
    def _connection(self, *, write: bool) -> Iterator[Connection]:
        try:
            conn = self._engine.connect()
        except (sa.exc.OperationalError, oslo_errors.DBConnectionError) as error:
            # Refused, starting up, going down, too many connections: each may be over soon.
            raise _TryAgain from error
        except sa.exc.TimeoutError as error:
            raise Unavailable(f"No connection became free: {error}") from error
        with conn:
            yield conn.execution_options(**{_WRITE: write})


@contextmanager
def _repeatable() -> Iterator[None]:
    """Tell what is over when it is tried again from what is not."""
    try:
        yield
    except (oslo_errors.DBDeadlock, oslo_errors.DBConnectionError) as error:
        raise _TryAgain from error
    except sa.exc.OperationalError as error:
        if _is_conflict(error.orig):
            raise _TryAgain from error
        if _is_full(error.orig):
            raise Unavailable(f"The database cannot store anything: {error.orig}") from error
        raise


def _is_conflict(error: BaseException | None) -> bool:
    """What oslo.db does not name: SQLite's writer is busy for too long, PostgreSQL cannot serialize."""
    if getattr(error, "sqlstate", None) == _SERIALIZATION_FAILURE:
        return True
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _is_full(error: BaseException | None) -> bool:
    """Its disk is full, or another of its resources is used up: it may be over later."""
    if str(getattr(error, "sqlstate", None) or "").startswith(_INSUFFICIENT_RESOURCES):
        return True
    if str(getattr(error, "sqlite_errorname", "")) == "SQLITE_FULL":
        return True
    code = error.args[0] if error is not None and error.args else None
    return code in _MARIADB_FULL


def _make_engine(url: str, pool_size: int) -> Engine:
    """oslo.db's own engine connects at once, asks the server before each transaction whether it is there
    (here, a transaction that finds it gone is run again), and begins SQLite's transactions deferred; only
    its error classes are taken.
    """
    backend = make_url(url).get_backend_name()
    options: dict[str, typing.Any] = {"pool_size": pool_size, "max_overflow": pool_size}
    if backend != "sqlite":
        options.update(isolation_level="READ COMMITTED", pool_recycle=RECYCLE)
    engine = sa.create_engine(url, **options)
    exc_filters.register_engine(engine)
    if backend == "sqlite":
        _prepare_sqlite(engine)
    elif backend in ("mysql", "mariadb"):
        _prepare_mariadb(engine)
    return engine


def _prepare_mariadb(engine: Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # A value that does not fit is an error, not a warning.
        with dbapi.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = 'TRADITIONAL'")


def _prepare_sqlite(engine: Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # The driver's own transaction handling begins too late; SQLAlchemy's "begin" does it below.
        dbapi.isolation_level = None
        # First of all: the switch to WAL may have to wait, too.
        dbapi.execute("PRAGMA busy_timeout=30000")
        dbapi.execute("PRAGMA journal_mode=WAL")
        dbapi.execute("PRAGMA synchronous=NORMAL")

    @sa.event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        write = conn.get_execution_options().get(_WRITE, True)
        conn.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
