"""Connections to the three databases: their time limits, and which of their errors a retry may cure.

Each wait ends: for an unreachable server, for a row whose holder has died, for a slow statement, and for a
transaction that its own process has forgotten.  The limits are set when a connection is made, so they hold
for all statements on it.
"""

import contextlib
import functools
import os
import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from oslo_db.sqlalchemy import exc_filters
from sqlalchemy.engine import Connection, Engine, ExceptionContext, make_url

from ..settings import Seconds, given, setting
from .errors import RetryTransaction, TooSlow, Unavailable

WRITE = "stoker_write"
"""Name of the execution option that says whether a transaction changes anything."""
RECYCLE = 1800.0
"""Seconds after which an idle connection is replaced, before a firewall forgets it."""
BRIEF_LOCK = 0.25
"""Seconds that a brief transaction waits for a lock on PostgreSQL: healthy ones hold it less long."""
BRIEF_LOCK_MARIADB = 1
"""The same on MariaDB, which counts in whole seconds."""
ANSWER_MARGIN = 5.0
"""Seconds, past the server's own limit of a statement, after which the client takes the server for gone."""
_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


@dataclass(frozen=True)
class DatabaseLimits:
    """Limits of waits; `pool` and `retry` have no 0 for no limit."""

    pool: Seconds = setting(
        "pool_timeout",
        10.0,
        "Seconds to wait for a connection while all are in use; then a request is refused with 503.",
        least=0.1,
    )
    connect: Seconds = setting(
        "connect_timeout",
        10.0,
        "Seconds in which the server must answer a new connection; 0: no limit. An open connection notices "
        "some seconds later that the server is gone.",
        least=0,
    )
    lock: Seconds = setting(
        "lock_timeout",
        5.0,
        "Seconds that a statement waits for a row that another transaction has locked; 0: no limit. MariaDB "
        "counts whole seconds. Shorter fails sooner, longer tolerates more contention. Duties wait for a "
        "fraction of a second, and return to the row later.",
        least=0,
    )
    statement: Seconds = setting(
        "statement_timeout",
        30.0,
        "Seconds that one statement may take, including its waits for locks; 0: no limit. It does not apply "
        "to `stoker-manage db sync`, `db purge`, `db recount` and `secrets rotate`.",
        least=0,
    )
    idle: Seconds = setting(
        "idle_transaction_timeout",
        60.0,
        "Seconds between two statements of a transaction after which the server ends it and releases its "
        "locks. The locks of a host that lost power are kept for this long. 0: until the server's keepalive "
        "notices, hours by default.",
        least=0,
    )
    retry: Seconds = setting(
        "retry_time",
        10.0,
        "Seconds for which a transaction is retried after a deadlock, a lost connection or a lock_timeout. "
        "Together with lock_timeout it bounds the time of a request whose stack is locked.",
        least=0,
    )
    busy: Seconds = setting(
        "busy_timeout",
        30.0,
        "Seconds that a transaction waits to write to SQLite, which allows one writer at a time.",
        least=0.1,
    )

    reads_tables: bool = given(False)
    """A program for long work may read whole tables; statements of a daemon go by indexes."""

    def for_long_work(self) -> "DatabaseLimits":
        """Return the limits for a program whose statements may take as long as they need."""
        return replace(self, lock=max(self.lock, 60.0), statement=0.0, idle=0.0, reads_tables=True)


@dataclass(frozen=True)
class DatabaseSettings:
    """The database of an installation.

    :raises ValueError: a statement would time out while it may still wait for a lock.
    """

    connection: str = setting(
        "connection",
        "sqlite:////var/lib/stoker/stoker.sqlite",
        "SQLAlchemy URL: postgresql+psycopg://, mysql+pymysql:// or, on a single host, sqlite://.",
        is_secret=True,
    )
    pool_size: int = setting(
        "pool_size",
        20,
        "Maximum number of connections of each process, which keeps them open. A conductor needs one for the "
        "work loop, three for its duties, up to four for their long work, and one for each step that reads; "
        "the API needs one for each concurrent request.",
        least=1,
    )
    limits: DatabaseLimits = DatabaseLimits()
    clock_tolerance: Seconds = setting(
        "clock_tolerance",
        1.0,
        "Seconds that this host's clock may differ from the database's before a warning is logged, and that "
        "the database's time may jump before timeouts pause until the jump is confirmed. Deadlines follow "
        "the database's clock, whatever this host's says.",
        least=0.05,
    )

    def __post_init__(self) -> None:
        limits = self.limits
        if limits.statement and not 0 < limits.lock < limits.statement:
            raise ValueError(
                "lock_timeout must be less than statement_timeout, which counts waits for locks, too"
            )


def make_engine(url: str, pool_size: int, limits: DatabaseLimits) -> Engine:
    """Return an engine whose connections keep to the limits; it does not connect yet.

    Only the error classes of oslo.db are used.  Its own engine connects at once, and begins SQLite's
    transactions deferred.  It also asks the server before each transaction whether it is there; here, a
    transaction that finds it gone is run again.
    """
    backend = make_url(url).get_backend_name()
    # Without overflow, for each connection beyond the pool is made for one transaction.
    options: dict[str, typing.Any] = {"pool_size": pool_size, "max_overflow": 0}
    options["pool_timeout"] = limits.pool
    if backend != "sqlite":
        options.update(isolation_level="READ COMMITTED", pool_recycle=RECYCLE)
        url_options = make_url(url).query  # An option in the operator's URL wins.
        defaults = _connect_args(backend, limits).items()
        options["connect_args"] = {name: value for name, value in defaults if name not in url_options}
    engine = sa.create_engine(url, **options)
    sa.event.listen(engine, "handle_error", _leave_read_only_server)
    exc_filters.register_engine(engine)
    if backend == "sqlite":
        _prepare_sqlite(engine, limits)
    elif backend in ("mysql", "mariadb"):
        _prepare_mariadb(engine, limits)
    elif backend == "postgresql":
        _prepare_postgresql(engine, limits)
    return engine


WRITE_OPTIONS: typing.Mapping[str, typing.Any] = {WRITE: True}
"""The execution options of a connection for a transaction that changes something."""


def read_options(backend: str) -> dict[str, typing.Any]:
    """Return the execution options of a connection for a transaction that changes nothing.

    On PostgreSQL each statement of a READ COMMITTED transaction sees its own moment.  So BEGIN and COMMIT
    give a reader nothing, and are half of the round trips of most reads.  SQLite needs them for one moment of
    all statements, and on MariaDB to switch costs as much as they do.
    """
    options: dict[str, typing.Any] = {WRITE: False}
    return options | {"isolation_level": "AUTOCOMMIT"} if backend == "postgresql" else options


_TIME = {
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    "mysql": "SELECT unix_timestamp(now(6))",
    "mariadb": "SELECT unix_timestamp(now(6))",
}


def server_time(conn: Connection) -> float | None:
    """Return the server's time in seconds since the epoch; None: SQLite has no server."""
    query = _TIME.get(conn.dialect.name)
    return None if query is None else float(conn.exec_driver_sql(query).scalar_one())


def set_brief(conn: Connection) -> None:
    """Wait for locks only briefly in this transaction."""
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql(f"SET LOCAL lock_timeout = {_ms(BRIEF_LOCK)}")
    elif conn.dialect.name != "sqlite":
        conn.exec_driver_sql(_mariadb_locks(rows=BRIEF_LOCK_MARIADB, tables=str(BRIEF_LOCK_MARIADB)))


def end_brief(conn: Connection, limits: DatabaseLimits) -> None:
    """Take back `set_brief` once the transaction has ended: MariaDB keeps it for the connection."""
    if conn.dialect.name not in ("postgresql", "sqlite"):
        conn.exec_driver_sql(_mariadb_locks(rows=_mariadb_lock(limits), tables="DEFAULT"))


def _connect_args(backend: str, limits: DatabaseLimits) -> dict[str, typing.Any]:
    connect = {"connect_timeout": max(1, round(limits.connect))} if limits.connect else {}
    if backend == "postgresql":
        # A peer that is gone is found after 25 s of silence, or sooner if something sent stays unanswered.
        user_timeout = {"tcp_user_timeout": _ms(limits.connect + ANSWER_MARGIN)} if limits.connect else {}
        return {**connect, **user_timeout, **_KEEPALIVES}
    if not limits.statement:
        return connect
    answer = limits.statement + ANSWER_MARGIN
    return {**connect, "read_timeout": answer, "write_timeout": answer}


_BY_INDEXES = "SET enable_seqscan = off; SET jit = off"
"""PostgreSQL keeps the plan of a prepared statement.  One that was made while a table was small would read
all of the table until the next ANALYZE, a minute later.  To compile plans takes longer than these statements.
"""


def _prepare_postgresql(engine: Engine, limits: DatabaseLimits) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # Not as start parameters of the connection: poolers such as PgBouncer refuse those.
        with dbapi.cursor() as cursor:
            cursor.execute(
                f"SET lock_timeout = {_ms(limits.lock)}; SET statement_timeout = {_ms(limits.statement)}; "
                f"SET idle_in_transaction_session_timeout = {_ms(limits.idle)}"
            )
            if not limits.reads_tables:
                cursor.execute(_BY_INDEXES)
        dbapi.commit()
        dbapi.cursor_factory = _plainly_described(dbapi.cursor_factory)


_Column = tuple[typing.Any, ...]


class _Columns(Sequence[_Column]):
    """The columns of a result, by names and types alone; each is made when it is read.

    psycopg (3.3) makes an object for each column of each result, and looks up its type.  SQLAlchemy reads the
    names, and those only of the first result of a statement.
    """

    def __init__(self, result: typing.Any) -> None:
        self._result = result

    def __len__(self) -> int:
        return int(self._result.nfields)

    @typing.overload
    def __getitem__(self, index: int) -> _Column: ...
    @typing.overload
    def __getitem__(self, index: slice) -> Sequence[_Column]: ...
    def __getitem__(self, index: int | slice) -> _Column | Sequence[_Column]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        return self._result.fname(i).decode(), self._result.ftype(i), None, None, None, None, None


@functools.cache
def _plainly_described(cursor_class: type) -> type:
    """Return a class of psycopg's cursors that describes the columns of a result by `_Columns`."""

    def description(cursor: typing.Any) -> _Columns | None:
        result = cursor.pgresult
        return _Columns(result) if result is not None and result.nfields else None

    return type("PlainlyDescribed", (cursor_class,), {"description": property(description)})


def _prepare_mariadb(engine: Engine, limits: DatabaseLimits) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # A value that does not fit is an error, not a warning.
        # In UTC, for in a local zone an hour of each autumn comes twice.
        assignments = ["sql_mode = 'TRADITIONAL'", "time_zone = '+00:00'"]
        assignments.append(f"innodb_lock_wait_timeout = {_mariadb_lock(limits)}")
        if "mariadb" in dbapi.get_server_info().lower():  # MySQL knows neither.
            assignments.append(f"max_statement_time = {limits.statement}")
            assignments.append(f"idle_transaction_timeout = {round(limits.idle)}")
        with dbapi.cursor() as cursor:
            cursor.execute("SET " + ", ".join(f"SESSION {setting}" for setting in assignments))


def _prepare_sqlite(engine: Engine, limits: DatabaseLimits) -> None:
    @sa.event.listens_for(engine, "do_connect")
    def make_private(*_: object) -> None:
        # SQLite gives its journals the mode of the file.  The file must never be opened and closed beside
        # SQLite: that releases all locks that this process has on it (sqlite.org/howtocorrupt.html, 2.2).
        if (path := engine.url.database) and not path.startswith((":memory:", "file:")):
            with contextlib.suppress(OSError):  # The file exists, or SQLite reports the error.
                os.mknod(path, 0o600)

    @sa.event.listens_for(engine, "connect")
    def prepare(dbapi: typing.Any, record: object) -> None:
        # The driver's own transaction handling begins too late; SQLAlchemy's "begin" does it below.
        dbapi.isolation_level = None
        # First, because the switch to WAL may have to wait, too.
        dbapi.execute(f"PRAGMA busy_timeout={_ms(limits.busy)}")
        dbapi.execute("PRAGMA journal_mode=WAL")
        dbapi.execute("PRAGMA synchronous=NORMAL")

    @sa.event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        write = conn.get_execution_options().get(WRITE, True)
        conn.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _leave_read_only_server(context: ExceptionContext) -> None:
    """Take the connection for lost where its server takes no writes.

    After a failover that is the former primary, or a standby: a new connection leads to the present one.
    """
    if _is_read_only(context.original_exception):
        context.is_disconnect = True


def _mariadb_locks(*, rows: int, tables: str) -> str:
    """Return the statement that limits waits for rows and for tables, which changes of the schema lock."""
    return f"SET SESSION innodb_lock_wait_timeout = {rows}, SESSION lock_wait_timeout = {tables}"


def _mariadb_lock(limits: DatabaseLimits) -> int:
    """Return whole seconds, and MariaDB's maximum where there is no limit."""
    return max(1, round(limits.lock)) if limits.lock else 1073741824


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


_SERIALIZATION_FAILURE = "40001"
_INSUFFICIENT_RESOURCES = "53"
"""Class of PostgreSQL's codes: disk full, out of memory, too many connections."""
_MARIADB_FULL = (1021, 1114)
"""ER_DISK_FULL, ER_RECORD_FILE_FULL."""
_READ_ONLY = "25006"
"""PostgreSQL's code read_only_sql_transaction."""
_MARIADB_READ_ONLY = (1180, 1290, 1836)
"""ER_ERROR_DURING_COMMIT (a node of Galera without the majority), ER_OPTION_PREVENTS_STATEMENT,
ER_READ_ONLY_MODE."""
_LOCK_TIMEOUT = "55P03"
_CANCELED = "57014"
_IDLE_IN_TRANSACTION = "25P03"
"""PostgreSQL's codes: lock_not_available, query_canceled, idle_in_transaction_session_timeout."""
_MARIADB_LOCK_TIMEOUT = 1205
_MARIADB_STATEMENT_TIMEOUT = 1969


def translated(error: Exception) -> Exception:
    """Return RetryTransaction for an error that a retry may cure, or what else it means here.

    The holder of a lock may be gone at the next try.  A statement that timed out would do so again.
    """
    if isinstance(error, oslo_errors.DBDeadlock):
        return RetryTransaction(locked=_code(error.inner_exception) == _MARIADB_LOCK_TIMEOUT)
    if isinstance(error, oslo_errors.DBConnectionError):
        return RetryTransaction()
    if not isinstance(error, sa.exc.DBAPIError):
        return error
    if _is_idle(error.orig):
        return RetryTransaction()
    if not isinstance(error, sa.exc.OperationalError):
        return error
    if _is_lock_timeout(error.orig) or _is_conflict(error.orig):
        return RetryTransaction(locked=not _is_serialization(error.orig))
    if _is_too_long(error.orig):
        return TooSlow(f"A statement timed out: {error.orig}")
    if _is_full(error.orig):
        return Unavailable(f"The database cannot store anything: {error.orig}")
    return error


def _sqlstate(error: BaseException | None) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def _code(error: BaseException | None) -> int | None:
    """Return the number of an error of MariaDB's, however it is wrapped."""
    error = getattr(error, "orig", error)
    code = error.args[0] if error is not None and error.args else None
    return code if isinstance(code, int) else None


def _is_conflict(error: BaseException | None) -> bool:
    """Return whether transactions collided in a way that oslo.db does not name.

    SQLite's writer was busy for too long, or PostgreSQL could not serialize.
    """
    if _is_serialization(error):
        return True
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _is_serialization(error: BaseException | None) -> bool:
    return _sqlstate(error) == _SERIALIZATION_FAILURE


def _is_lock_timeout(error: BaseException | None) -> bool:
    return _sqlstate(error) == _LOCK_TIMEOUT or _code(error) == _MARIADB_LOCK_TIMEOUT


def _is_too_long(error: BaseException | None) -> bool:
    return _sqlstate(error) == _CANCELED or _code(error) == _MARIADB_STATEMENT_TIMEOUT


def _is_idle(error: BaseException | None) -> bool:
    """Return whether PostgreSQL has ended the transaction because our process did nothing for too long."""
    return _sqlstate(error) == _IDLE_IN_TRANSACTION


def _is_read_only(error: BaseException | None) -> bool:
    """Return whether the server takes no writes: it is a standby, is cut off, or an operator has said so."""
    return _sqlstate(error) == _READ_ONLY or _code(error) in _MARIADB_READ_ONLY


def _is_full(error: BaseException | None) -> bool:
    """Return whether the server's disk is full, or another of its resources is used up for now."""
    if _sqlstate(error).startswith(_INSUFFICIENT_RESOURCES):
        return True
    if str(getattr(error, "sqlite_errorname", "")) == "SQLITE_FULL":
        return True
    return _code(error) in _MARIADB_FULL
