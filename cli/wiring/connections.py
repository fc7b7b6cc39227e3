"""Reaching the servers that the configuration names; what is wrong is told with the option."""

import importlib.metadata
import math
import secrets
import threading
import time
from collections.abc import Callable

import oslo_db.exception
import oslo_messaging
import sqlalchemy
import tooz
from oslo_config import cfg

from ...conductor.liveness import answered
from ...db import conductors
from ...db import settings as installation
from ...db.connections import DatabaseLimits
from ...db.engine import Database, Trouble
from ...db.errors import ShardCountMismatch, Unavailable
from ...db.notifications import Listener
from ...db.schema import revisions
from ...db.schema.revisions import Fit
from ...db.server_clock import ServerClock
from ...observe import metrics
from ...observe.recorder import SILENT, Recorder
from ...ring.group import make_coordinator
from ...ring.timing import MembershipTiming
from ...rpc.bus import Bus, open_bus
from ...rpc.level import Level
from ...rpc.notifier import SERVICE, Notifier, open_notifier
from ...sealing.sealer import Sealer, SealError
from ...sealing.signal_urls import KEY_BYTES, SignalAddresses
from ...template.residual import ARGS, sealed
from ..config import files
from ..config.options import WrongConfiguration

CONNECTION = "[database] connection"
LOOK_AGAIN = 5.0
"""Seconds."""
Troubled = Callable[[Trouble], None]
DATABASE_ERRORS = (Unavailable, sqlalchemy.exc.DBAPIError, oslo_db.exception.DBError)


def database_troubles(recorder: Recorder) -> Troubled:
    """For Database: counts."""
    counted = {
        Trouble.AGAIN: metrics.DATABASE_RETRIES,
        Trouble.GIVEN_UP: metrics.DATABASE_ERRORS,
        Trouble.LOCKED: metrics.DATABASE_LOCKED,
    }
    return lambda trouble: recorder.add(counted[trouble])


def require_configuration(conf: cfg.ConfigOpts) -> None:
    """:raises WrongConfiguration: none was found."""
    if (told := files.missing(conf)) is not None:
        raise WrongConfiguration(told)


def limits_of(conf: cfg.ConfigOpts) -> DatabaseLimits:
    """Return the limits of time that the configuration sets.

    :raises WrongConfiguration: they contradict each other.
    """
    wanted = conf.database
    if 0 < wanted.statement_timeout <= wanted.lock_timeout or (
        wanted.statement_timeout and not wanted.lock_timeout
    ):
        raise WrongConfiguration(
            "[database] lock_timeout must be less than statement_timeout, which counts waits for locks, too"
        )
    return DatabaseLimits(
        connect=wanted.connect_timeout,
        lock=wanted.lock_timeout,
        statement=wanted.statement_timeout,
        idle=wanted.idle_transaction_timeout,
        pool=wanted.pool_timeout,
        retry=wanted.retry_time,
        busy=wanted.busy_timeout,
    )


def connect(
    conf: cfg.ConfigOpts,
    listener: Listener | None = None,
    troubled: Troubled = lambda trouble: None,
    *,
    pool_size: int | None = None,
    long_work: bool = False,
) -> Database:
    """The database, of whatever version; whether it answers is not asked.

    :param listener, troubled: see Database.
    :param pool_size: in place of the option's.
    :param long_work: statements may take as long as they need.

    :raises WrongConfiguration: there is no configuration, the URL is none, its driver is not installed, or
        limits contradict each other.
    """
    require_configuration(conf)
    limits = limits_of(conf)
    try:
        return Database(
            conf.database.connection,
            pool_size=pool_size or conf.database.pool_size,
            limits=limits.for_long_work() if long_work else limits,
            clock=ServerClock(tolerance=conf.database.clock_tolerance),
            listener=listener,
            troubled=troubled,
            answered=answered,
        )
    except (sqlalchemy.exc.ArgumentError, ImportError, *DATABASE_ERRORS) as error:
        raise WrongConfiguration(f"{CONNECTION}: {error}") from error


def open_database(
    conf: cfg.ConfigOpts,
    listener: Listener | None = None,
    troubled: Troubled = lambda trouble: None,
    *,
    long_work: bool = False,
) -> tuple[Database, int]:
    """The database, at a version that this release works on, and its shard count.

    :param listener, troubled: see Database.
    :param long_work: see `connect`.

    :raises WrongConfiguration: it is at another one, cannot be reached, or has another shard count.
    """
    database = connect(conf, listener, troubled, long_work=long_work)
    try:
        at = revisions.current(database)
    except DATABASE_ERRORS as error:
        raise WrongConfiguration(f"{CONNECTION}: the database cannot be used: {error}") from error
    if not (fit := revisions.fit_of(at)).works:
        raise WrongConfiguration(f"{CONNECTION}: {unfit(at, fit)}")
    wanted = conf.stacks.shard_count
    try:
        return database, database.write(lambda conn: installation.shard_count(conn, wanted))
    except ShardCountMismatch as error:
        raise WrongConfiguration(f"[stacks] shard_count: {error}") from error


def unfit(at: str | None, fit: Fit) -> str:
    """Why a database is none to work on, and what to run."""
    sync = "`stoker-manage db sync"
    if fit == Fit.NONE:
        return f"the database was never set up, this release needs {revisions.NEWEST}: run {sync}`"
    found = f"the database is at version {at}, this release "
    if fit == Fit.OLD:
        also = f"or, if no daemon of an older release runs, {sync}`"
        return f"{found}needs {revisions.EXPANDED}: run {sync} --expand`, {also}"
    return f"{found}knows {revisions.NEWEST}: install the newer one that has migrated it"


def make_sealer(conf: cfg.ConfigOpts, binds: Callable[[], bool] = lambda: True) -> Sealer:
    """:param binds: see Sealer.

    :raises WrongConfiguration: there is no configuration, no key, or it is none.
    """
    require_configuration(conf)
    try:
        return Sealer(conf.secrets.key, binds=binds)
    except ValueError as error:
        raise WrongConfiguration(f"[secrets] key: {error}") from error


def binds_tokens(database: Database, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return what says whether new tokens may be bound to their place: once the schema is contracted.  Until
    then programs of the release before may run, which cannot open those.

    Asks the database once in `LOOK_AGAIN` seconds, and not any more when the answer was yes.
    """
    lock, known, until = threading.Lock(), False, -math.inf

    def binds() -> bool:
        nonlocal known, until
        with lock:
            if not known and clock() >= until:
                until = clock() + LOOK_AGAIN
                at = revisions.current(database)
                known = at is not None and revisions.place_of(at) >= revisions.place_of(revisions.NEWEST)
            return known

    return binds


def make_addresses(conf: cfg.ConfigOpts, database: Database, sealer: Sealer) -> SignalAddresses:
    """With the installation's own key, which is made when it is first wanted.

    :raises WrongConfiguration: the key that has sealed it is not there.
    """
    own = sealer.of_installation(installation.SIGNAL_KEY)
    fresh = sealed(own.seal(secrets.token_hex(KEY_BYTES)))
    stored = database.write(lambda conn: installation.signal_key(conn, fresh))
    try:
        key = bytes.fromhex(own.open(stored[ARGS][0]))
    except SealError as error:
        raise WrongConfiguration(f"[secrets] key: {error}") from error
    return SignalAddresses(conf.api.public_url.rstrip("/"), key)


def make_level(conf: cfg.ConfigOpts, database: Database) -> Level:
    """In which version messages are sent: as [upgrade_levels] conductor says."""

    def spoken() -> set[str]:
        found = database.read(conductors.list_all)
        return {c.rpc_version for c in conductors.may_rejoin(found, database.clock())}

    return Level(spoken, pin=lambda: conf.upgrade_levels.conductor)


def make_bus(conf: cfg.ConfigOpts, recorder: Recorder = SILENT, level: Level | None = None) -> Bus:
    """:param level: see rpc.client.HintSender.

    :raises WrongConfiguration: the URL is none, or an option that another one needs is missing."""
    try:
        bus = open_bus(conf, conf.transport_url, recorder, level)
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as error:
        raise WrongConfiguration(f"transport_url: {error}") from error
    managed = "oslo_messaging_rabbit" in conf and conf.oslo_messaging_rabbit.use_queue_manager
    if managed and not conf.oslo_concurrency.lock_path:
        # oslo.messaging asks for it with its first message, in the middle of the work.
        bus.close()
        raise WrongConfiguration(
            "[oslo_concurrency] lock_path is missing: a directory of the service's own for locks, which "
            "[oslo_messaging_rabbit] use_queue_manager needs"
        )
    return bus


def make_notifier(conf: cfg.ConfigOpts) -> tuple[Notifier, oslo_messaging.Transport] | None:
    """See open_notifier.

    :raises WrongConfiguration: a driver is none, or has no broker.
    """
    publisher = conf.default_publisher_id or f"{SERVICE}.{conf.host}"
    section = "[oslo_messaging_notifications]"
    unknown = sorted({*conf.oslo_messaging_notifications.driver} - (known := _notification_drivers()))
    if unknown:
        raise WrongConfiguration(
            f"{section} driver: there is no {', '.join(unknown)}; known are: {', '.join(sorted(known))}"
        )
    level, url = conf.default_notification_level, conf.transport_url
    try:
        return open_notifier(conf, publisher=publisher, level=level, url=url)
    except (ValueError, oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as error:
        raise WrongConfiguration(f"{section} transport_url: {error}") from error


def _notification_drivers() -> set[str]:
    return {point.name for point in importlib.metadata.entry_points(group="oslo.messaging.notify.drivers")}


def make_timing(conf: cfg.ConfigOpts) -> MembershipTiming:
    """:raises WrongConfiguration: the intervals contradict each other."""
    wanted = conf.coordination
    try:
        return MembershipTiming(wanted.heartbeat, wanted.timeout, wanted.poll)
    except ValueError as error:
        raise WrongConfiguration(f"[coordination]: {error}") from error


def check_backend(conf: cfg.ConfigOpts) -> None:
    """:raises WrongConfiguration: there is no driver for the backend; whether it answers is not asked."""
    try:
        make_coordinator(conf.coordination.backend_url, b"check")
    except (tooz.ToozError, RuntimeError, ImportError, ValueError) as error:
        raise WrongConfiguration(f"[coordination] backend_url: {error}") from error
