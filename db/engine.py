"""Transactions, their retries, and the time of the server, by which deadlines are stored.

A process measures every few seconds how far the server's clock is from its own monotonic clock, and adds that
to the latter.  So nothing ends early or late because a host's clock is wrong, or is set while the process
runs.  SQLite has no server: there it is the clock of the host, which all processes share.
"""

import contextlib
import enum
import logging
import random
import threading
import time
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_db import exception as oslo_errors
from sqlalchemy.engine import Connection, Engine

from . import notifications, usage
from .connections import (
    WRITE_OPTIONS,
    DatabaseLimits,
    DatabaseSettings,
    end_brief,
    make_engine,
    read_options,
    server_time,
    set_brief,
    translated,
)
from .errors import RetryTransaction, RowLocked, Unavailable
from .id_source import OPTION, IdSource
from .schema import column_types

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")

LIMITS = DatabaseLimits()
EVERY = 5.0
"""Seconds between two measurements; each is one cheap statement of a transaction that runs anyway."""
AGAIN = 1.0
"""The same while the last measurement was useless, or the clock is in doubt."""
CONFIRMED_AFTER = 2.0
"""Seconds after which a jump of the server's time is accepted if this host's clock has the new time, too."""
BELIEVED_AFTER = 60.0
"""The same if only the server has the new time: an operator may correct its clock in the meantime."""
KEPT_FOR = 60.0
"""Seconds for which a thread keeps a connection; see `Database.keeping`."""
KEPT_FROM = 8
"""Connections of a pool from which a thread may keep one: as many as a conductor needs."""
WARN_EVERY = 60.0
"""Seconds between two warnings about the same difference."""


@dataclass(frozen=True)
class _Doubt:
    """A time of the server that does not follow from the one before.

    :ivar offset: seconds from our monotonic clock to the new time.
    :ivar since: the moment of its first measurement, by our monotonic clock.
    """

    offset: float
    since: float


class ServerClock:
    """The clock of the database server, in seconds since the epoch.  Thread-safe.

    Before the first measurement it shows the host's time.  If the server's time jumps, the clock runs on as
    before until the jump is confirmed.  Until then duties that end actions by time pause.

    :param wall: the host's clock.
    :param monotonic: seconds that never jump.
    :param tolerance: seconds by which the server's time may differ from the expected time.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        tolerance: float = DatabaseSettings.clock_tolerance,
    ) -> None:
        self.wall = wall
        self.monotonic = monotonic
        self._tolerance = tolerance
        self._lock = threading.Lock()
        self._offset: float | None = None
        self._doubt: _Doubt | None = None
        self._next = float("-inf")
        self._warned_at = float("-inf")

    def __call__(self) -> float:
        """Return the time now; in doubt the later one, so that no deadline is stored too early."""
        offset = self._offset
        doubt = self._doubt
        if offset is None:
            return self.wall()
        return self.monotonic() + (offset if doubt is None else max(offset, doubt.offset))

    @property
    def is_sure(self) -> bool:
        """Return whether duties may end actions by this clock."""
        return self._offset is not None and self._doubt is None

    @property
    def host_ahead(self) -> float:
        """Return the seconds by which the host's clock is ahead; 0 before the first measurement."""
        return 0.0 if self._offset is None else self.wall() - self.monotonic() - self._offset

    def trouble(self) -> str | None:
        """Return in words why the clock is not sure; None: it is sure, or was not measured yet."""
        doubt = self._doubt
        offset = self._offset
        if doubt is None or offset is None:
            return None
        moved = doubt.offset - offset
        return f"clock in doubt: the database's time has jumped by {moved:+.1f} s; timeouts pause"

    def take_turn(self) -> bool:
        """Return whether a measurement is due; a caller that gets True makes it."""
        with self._lock:
            now = self.monotonic()
            if now < self._next:
                return False
            self._next = now + AGAIN
            return True

    def measured(self, server: float, sent_at: float, after: float) -> None:
        """Accept a measurement, or leave it out if it took too long.

        :param server: the server's time at some moment between the two others.
        :param sent_at: the moment of the question, by our monotonic clock.
        :param after: the moment of the answer, by our monotonic clock.
        """
        with self._lock:
            if after - sent_at > self._tolerance:
                LOG.debug("Ignoring a measurement of the database's time that took %.1f s", after - sent_at)
                return
            # The true offset is between these two; the known one stays while it may be true.
            low = server - after
            high = server - sent_at
            old = self._offset
            new = (low + high) / 2 if old is None else min(max(old, low), high)
            if old is not None and abs(new - old) > self._tolerance:
                self._question(old, new, after)
            else:
                if self._doubt is not None:
                    LOG.warning("The database's time has jumped back to the expected time")
                self._offset = new
                self._doubt = None
                self._next = after + EVERY
            self._compare(after)

    def forget(self) -> None:
        """Show the host's time until the next measurement, as before the first one."""
        with self._lock:
            self._offset = None
            self._doubt = None
            self._next = float("-inf")

    def _question(self, old: float, new: float, now: float) -> None:
        doubt = self._doubt
        if doubt is None or abs(new - doubt.offset) > self._tolerance:
            self._doubt = _Doubt(new, now)
            LOG.warning("The database's time has jumped by %+.1f s: timeouts pause", new - old)
            return
        witnessed = abs(self.wall() - self.monotonic() - new) <= self._tolerance
        if now - doubt.since >= (CONFIRMED_AFTER if witnessed else BELIEVED_AFTER):
            self._offset = new
            self._doubt = None
            self._next = now + EVERY
            LOG.warning("The database's time has jumped by %+.1f s for good: the new time counts", new - old)

    def _compare(self, now: float) -> None:
        ahead = self.host_ahead
        if abs(ahead) > self._tolerance and now >= self._warned_at + WARN_EVERY:
            self._warned_at = now
            LOG.warning(
                "This host's clock differs from the database's by %+.1f s; the database's time counts. "
                "Check NTP on both hosts",
                ahead,
            )


class Trouble(enum.StrEnum):
    """A reason why a transaction did not take place at once; the values are labels of a metric."""

    AGAIN = "again"  #: it is retried
    GIVEN_UP = "given up"  #: the database does not answer
    LOCKED = "locked"  #: another transaction has held a row for too long


_THREAD = threading.local()


class _KeptConnection(threading.local):
    """The connection that a thread keeps between two transactions; each thread has its own attributes.

    :ivar is_used: whether the thread keeps one.
    """

    def __init__(self) -> None:
        self.is_used = False
        self._connection: Connection | None = None
        self._since = 0.0

    @contextlib.contextmanager
    def lend(self, connect: Callable[[], Connection]) -> Iterator[Connection]:
        """Lend the connection to one transaction."""
        now = time.monotonic()
        if self._connection is not None and now - self._since > KEPT_FOR:
            self.give_back()
        if self._connection is None:
            self._connection = connect()
            self._since = now
        connection = self._connection
        try:
            yield connection
        except BaseException:
            self.give_back()
            raise
        if connection.invalidated:
            self.give_back()

    def give_back(self) -> None:
        """Give the connection back to the pool, if there is one."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()


def in_transaction() -> bool:
    """Return whether this thread runs a transaction."""
    return getattr(_THREAD, "runs", 0) > 0


@contextlib.contextmanager
def routine() -> Iterator[None]:
    """Surround transactions of this thread that make nothing due, such as reports: they notify nobody."""
    _THREAD.is_routine = True
    try:
        yield
    finally:
        _THREAD.is_routine = False


@dataclass
class _Listener:
    """A listener of commits.

    :ivar every: least seconds between two of its calls.
    :ivar next: the moment from which it is called again, by the monotonic clock.
    """

    notify: Callable[[], None]
    every: float
    next: float = float("-inf")


class Commits:
    """Notifies listeners of commits, for a row of one may be due soon.  Any thread may call it.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._listeners: tuple[_Listener, ...] = ()

    def listen(self, notify: Callable[[], None], *, every: float) -> None:
        """Call `notify` after each commit from now on, in its thread; it must not block, nor raise.

        :param every: seconds in which it is called only for the first commit: they come by hundreds.
        """
        self._listeners = (*self._listeners, _Listener(notify, every))

    def __call__(self) -> None:
        """Note a commit of this thread.  Quick, for each transaction calls it."""
        if getattr(_THREAD, "is_routine", False):
            return
        now = self._monotonic()
        for listener in self._listeners:
            if now >= listener.next:
                listener.next = now + listener.every
                listener.notify()


class Database:
    """A database, which runs functions in transactions and retries them where that is safe.

    Transactions are READ COMMITTED on PostgreSQL and MariaDB; one that only reads takes no BEGIN and COMMIT
    on PostgreSQL.  SQLite uses WAL, so readers never wait.  Its one writer begins with BEGIN IMMEDIATE: two
    writers queue instead of failing half-way.

    The first transaction connects, and later ones reconnect when that is needed.

    :ivar clock: the server's time.
    :ivar ids: makes the ids of new rows.

    :param url: SQLAlchemy URL: ``sqlite:////path``, ``postgresql+psycopg://…`` or ``mysql+pymysql://…``.
    :param pool_size: most connections, kept open once made; each thread in a transaction takes one,
        and one that is `keeping` has one between transactions, too.
    :param limits: seconds that waits may take.
    :param clock: the server's clock; every few seconds a transaction that runs anyway measures it.
    :param ids: source of the ids of new rows; None: a source by that clock.
    :param tries: how often a transaction is run before it fails.
    :param sleep: waits between tries (seconds); the simulation passes its own.
    :param listener: gets the notifications of each transaction once it is committed; None: there are none.
    :param answered: called after each transaction that succeeds, in its thread; must not block, nor raise.
    :param committed: called after each transaction of `write` that succeeds, likewise.
    :param troubled: called for each transaction that fails or is retried; must not block, nor raise.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = DatabaseSettings.pool_size,
        limits: DatabaseLimits = LIMITS,
        clock: ServerClock | None = None,
        ids: IdSource | None = None,
        tries: int = 12,
        sleep: Callable[[float], None] = time.sleep,
        listener: notifications.Listener | None = None,
        troubled: Callable[[Trouble], None] = lambda trouble: None,
        answered: Callable[[], None] = lambda: None,
        committed: Callable[[], None] = lambda: None,
    ) -> None:
        self.url = url
        self.clock = clock or ServerClock()
        self.ids = ids or IdSource(self.clock)
        self._tries = tries
        self._sleep = sleep
        self._listener = listener
        self._troubled = troubled
        self._answered = answered
        self._committed = committed
        self._limits = limits
        self._pool_size = pool_size
        self._kept = _KeptConnection()
        self._engine = make_engine(url, pool_size, limits)
        self._read_options = read_options(self.dialect)

    @property
    def engine(self) -> Engine:
        """Return the engine, for migrations and tests."""
        return self._engine

    @property
    def dialect(self) -> str:
        """Return ``sqlite``, ``postgresql`` or ``mysql`` (MariaDB too)."""
        return self._engine.dialect.name

    def read(self, transaction: Callable[[Connection], T], *, most: int = 0) -> T:
        """Run `transaction` in a transaction that changes nothing.

        :param most: characters of the long values that it may read; 0: no limit.
        :raises TooMuchToRead: the long values have more characters; see metered.
        :raises Unavailable: the database does not answer.
        :raises TooSlow: a statement has taken longer than it may.
        """
        with metered(most):
            return self._run(transaction, write=False)

    def write(self, transaction: Callable[[Connection], T], *, brief: bool = False) -> T:
        """Run `transaction` in a transaction.

        After a deadlock, a lost connection or a collision of ids it is run again from its start.  So it must
        not change anything but the database, and it makes the ids of its new rows itself.  It is not run
        again where the connection was lost during the commit: then the transaction may have taken place.

        :param brief: whether waits for rows that others hold are short, and not retried: for transactions
            that others wait for, and that are repeated anyway.
        :raises Unavailable: the database does not answer.
        :raises RowLocked: another transaction has held a row for too long.
        :raises TooSlow: a statement has taken longer than it may.
        """
        return self._run(transaction, write=True, brief=brief)

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Let the writing transactions of this thread share one connection, if the pool has enough of them.

        To take one and to give it back is a fifteenth of the processor time of a transaction of few
        statements.  It returns after an error, and each minute: the pool replaces old connections.  Brief
        transactions, whose limits MariaDB keeps for the session, take one of their own.
        """
        self._kept.is_used = self._pool_size >= KEPT_FROM
        try:
            yield
        finally:
            self._kept.is_used = False
            self._kept.give_back()

    def ping(self) -> None:
        """Check that the database answers; may take long.

        :raises Unavailable: it does not.
        """
        self.read(lambda conn: conn.execute(sa.select(1)).scalar())

    def close(self) -> None:
        """Close all connections, and forget the server's time: who connects next may do so days later."""
        self._engine.dispose()
        self.clock.forget()

    def _run(self, transaction: Callable[[Connection], T], *, write: bool, brief: bool = False) -> T:
        last = time.monotonic() + self._limits.retry
        for attempt in range(1, self._tries + 1):
            try:
                return self._once(transaction, write=write, brief=brief)
            except RetryTransaction as error:
                cause = error.__cause__
                if brief and error.locked:
                    raise RowLocked(f"Another transaction holds a row: {cause}") from cause
                if attempt == self._tries or time.monotonic() >= last:
                    self._troubled(Trouble.LOCKED if error.locked else Trouble.GIVEN_UP)
                    kind = RowLocked if error.locked else Unavailable
                    raise kind(f"The database was unavailable in {attempt} tries: {cause}") from cause
                self._troubled(Trouble.AGAIN)
                LOG.debug("Retrying a transaction after try %d: %s", attempt, cause)
                self._sleep(random.uniform(0.5, 1.0) * min(1.0, 0.005 * 2**attempt))
            except Unavailable:  # A retry is useless, or may repeat a commit.
                self._troubled(Trouble.GIVEN_UP)
                raise
        raise AssertionError("unreachable")

    def _once(self, transaction: Callable[[Connection], T], *, write: bool, brief: bool) -> T:
        try:
            with self._connection(is_kept=write and not brief) as conn:
                return self._within(conn, transaction, write=write, brief=brief)
        except (sa.exc.DBAPIError, oslo_errors.DBError) as error:
            cause = translated(error)
            if cause is error:
                raise
            raise cause from error

    def _within(
        self, conn: Connection, transaction: Callable[[Connection], T], *, write: bool, brief: bool
    ) -> T:
        changes: usage.Changes = {}
        options = {**WRITE_OPTIONS, usage.NOTED: changes} if write else self._read_options
        conn.execution_options(**{OPTION: self.ids, **options})
        facts = notifications.collect(conn) if write and self._listener else []
        commits = False
        _THREAD.runs = getattr(_THREAD, "runs", 0) + 1
        try:
            with conn.begin():
                self._measure(conn)
                if brief:
                    set_brief(conn)
                result = transaction(conn)
                if changes:
                    usage.store(conn)
                commits = write
        except oslo_errors.DBConnectionError as error:
            if commits:
                raise Unavailable(f"The connection was lost during a commit: {error}") from error
            raise
        finally:
            _THREAD.runs -= 1
            if brief and not conn.invalidated:
                self._end_brief(conn)
        self._answered()
        if write:
            self._committed()
        if facts and self._listener:
            self._listener(facts)
        return result

    def _measure(self, conn: Connection) -> None:
        clock = self.clock
        if clock.take_turn():
            sent_at = clock.monotonic()
            server = server_time(conn)
            # SQLite has no server: its time is the host's.
            clock.measured(clock.wall() if server is None else server, sent_at, clock.monotonic())

    def _end_brief(self, conn: Connection) -> None:
        try:
            end_brief(conn, self._limits)
        except (sa.exc.DBAPIError, oslo_errors.DBError):
            # The transaction has ended, well or not; the next one gets another connection.
            conn.invalidate()

    def _connection(self, *, is_kept: bool) -> contextlib.AbstractContextManager[Connection]:
        return self._kept.lend(self._connect) if is_kept and self._kept.is_used else self._connect()

    def _connect(self) -> Connection:
        try:
            return self._engine.connect()
        except (sa.exc.OperationalError, oslo_errors.DBConnectionError, NotImplementedError) as error:
            # Refused, starting up, going down, too many connections: each may be over at the next try.
            # SQLAlchemy examines the first one, and cannot invalidate it if it is lost meanwhile.
            raise RetryTransaction from error
        except sa.exc.TimeoutError as error:
            raise Unavailable(f"No connection became free: {error}") from error


@contextlib.contextmanager
def metered(most: int) -> Iterator[None]:
    """Limit the stored values that are read inside, so that no answer takes all memory.

    Each list has pages, and each value that a request stores has a limit.  Their products may still be large:
    a page of the longest texts.  So the values of columns without a length are counted as they are read.

    :param most: characters; 0: no limit.
    :raises TooMuchToRead: the values read so far have more characters.
    """
    token = column_types.METER.set(column_types.Meter(most) if most else None)
    try:
        yield
    finally:
        column_types.METER.reset(token)
