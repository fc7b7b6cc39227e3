"""The database, from the configuration; an error names the option that is wrong."""

import contextlib
from collections.abc import Callable, Iterator

import oslo_db.exception
import sqlalchemy
from oslo_config import cfg

from ...api.health import DatabaseHealth
from ...conductor.liveness import answered
from ...db import settings as installation
from ...db.engine import Database, ServerClock, Trouble
from ...db.errors import ShardCountMismatch, Unavailable
from ...db.notifications import Listener
from ...db.schema import revisions
from ...db.schema.revisions import Fit
from ...observe import metrics
from ...observe.recorder import Recorder
from ..config.errors import WrongConfiguration
from ..config.files import missing
from ..config.sections import Settings

CONNECTION = "[database] connection"
OnTrouble = Callable[[Trouble], None]
OnCommit = Callable[[], None]
DATABASE_ERRORS = (Unavailable, sqlalchemy.exc.DBAPIError, oslo_db.exception.DBError)


def count_troubles(recorder: Recorder) -> OnTrouble:
    """Return the counter of the database's troubles, for Database."""
    counted = {
        Trouble.AGAIN: metrics.DATABASE_RETRIES,
        Trouble.GIVEN_UP: metrics.DATABASE_ERRORS,
        Trouble.LOCKED: metrics.DATABASE_LOCKED,
    }
    return lambda trouble: recorder.add(counted[trouble])


def require_configuration(conf: cfg.ConfigOpts) -> None:
    """Check that a configuration was found.

    :raises WrongConfiguration: no configuration was found.
    """
    if (text := missing(conf)) is not None:
        raise WrongConfiguration(text)


def connect(
    conf: cfg.ConfigOpts,
    listener: Listener | None = None,
    troubled: OnTrouble = lambda trouble: None,
    committed: OnCommit = lambda: None,
    *,
    pool_size: int | None = None,
    long_work: bool = False,
) -> Database:
    """Make the database, of any version, without a connection to it.

    :param listener, troubled, committed: the callbacks of Database.
    :param pool_size: the size of the pool in place of the option's.
    :param long_work: whether statements may take as long as they need.

    :raises WrongConfiguration: there is no configuration, the URL is malformed, its driver is not installed,
        or limits contradict each other.
    """
    require_configuration(conf)
    settings = Settings(conf).database
    try:
        return Database(
            settings.connection,
            pool_size=pool_size or settings.pool_size,
            limits=settings.limits.for_long_work() if long_work else settings.limits,
            clock=ServerClock(tolerance=settings.clock_tolerance),
            listener=listener,
            troubled=troubled,
            answered=answered,
            committed=committed,
        )
    except (sqlalchemy.exc.ArgumentError, ImportError, *DATABASE_ERRORS) as error:
        raise WrongConfiguration(f"{CONNECTION}: {error}") from error


def open_database(
    conf: cfg.ConfigOpts,
    listener: Listener | None = None,
    troubled: OnTrouble = lambda trouble: None,
    committed: OnCommit = lambda: None,
    *,
    long_work: bool = False,
) -> tuple[Database, int]:
    """Connect to the database, at a version that this release works on; return it and its shard count.

    :param listener, troubled, committed: the callbacks of Database.
    :param long_work: whether statements may take as long as they need.

    :raises WrongConfiguration: the database has another version or shard count, or cannot be reached.
    """
    database = connect(conf, listener, troubled, committed, long_work=long_work)
    with needed_at_start():
        at = database.read(revisions.current)
    if not (fit := revisions.fit_of(at)).works:
        raise WrongConfiguration(f"{CONNECTION}: {unfit(at, fit)}")
    expected = Settings(conf).installation.shard_count
    try:
        with needed_at_start():
            return database, database.write(lambda conn: installation.shard_count(conn, expected))
    except ShardCountMismatch as error:
        raise WrongConfiguration(f"[stacks] shard_count: {error}") from error


@contextlib.contextmanager
def needed_at_start() -> Iterator[None]:
    """Surround transactions without which a program cannot start; their errors are one line.

    The service manager starts the program again, so it need not wait for the database itself.

    :raises WrongConfiguration: the database cannot be used.
    """
    try:
        yield
    except DATABASE_ERRORS as error:
        lines = [line.strip() for line in str(error).splitlines() if not line.startswith("(Background")]
        raise WrongConfiguration(f"{CONNECTION}: the database cannot be used: {' '.join(lines)}") from error


def unfit(at: str | None, fit: Fit) -> str:
    """Return why this release cannot work on a database, and the command that helps."""
    sync = "`stoker-manage db sync"
    if at is None:
        return f"the database was never set up, this release needs {revisions.NEWEST}: run {sync}`"
    if fit == Fit.OLD:
        also = f"or, if no daemon of an older release runs, {sync}`"
        needs = f"the database is at {at}, this release needs {revisions.EXPANDED}"
        return f"{needs}: run {sync} --expand`, {also}"
    return revisions.unknown(at)


def database_health(conf: cfg.ConfigOpts) -> DatabaseHealth:
    """Make the check of the database.

    It has a connection of its own: while all others are busy the database is healthy.
    """
    database = connect(conf, pool_size=1)
    return DatabaseHealth(database.ping)
