"""The message bus and notifications, from the configuration."""

import contextlib
import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass

import oslo_messaging
from oslo_config import cfg

from ...db import conductors
from ...db.engine import Database
from ...observe.recorder import SILENT, Recorder
from ...rpc.bus import Bus, open_bus
from ...rpc.errors import BROKER_ERRORS
from ...rpc.level import Level
from ...rpc.notifier import SERVICE, Notifier, open_notifier
from ...rpc.outbox import Outbox
from ..config.errors import WrongConfiguration
from ..config.sections import Settings

GATHER = 0.03
"""Seconds in which hints of the API's requests share a message: casting costs half as much as a create."""


@dataclass(frozen=True)
class Messaging:
    """The message bus of a process.

    :ivar level: the version in which messages are sent.
    :ivar outbox: sends hints, in a thread of its own.
    """

    bus: Bus
    level: Level
    outbox: Outbox


@dataclass(frozen=True)
class Notifications:
    """The sender of notifications, with its transport."""

    notifier: Notifier
    transport: oslo_messaging.Transport

    def close(self) -> None:
        """Send the notifications that wait, and disconnect."""
        self.notifier.stop()
        self.transport.cleanup()


@contextlib.contextmanager
def bus_at_start() -> Iterator[None]:
    """Surround the start of a server on the message bus; a refusal is one line.

    :raises WrongConfiguration: the broker refuses the user or the vhost.
    """
    try:
        yield
    except BROKER_ERRORS as error:
        raise WrongConfiguration(f"transport_url: the message bus refuses: {error}") from error


def make_messaging(
    conf: cfg.ConfigOpts, database: Database, recorder: Recorder, *, gather: float = 0.0
) -> Messaging:
    """Make the message bus; the first message connects to it, once the outbox has started.

    :param gather: seconds in which hints share a message; see Outbox.
    :raises WrongConfiguration: the URL is malformed, or an option that another one needs is missing.
    """
    level = make_level(conf, database)
    bus = make_bus(conf, recorder, level)
    return Messaging(bus, level, Outbox(bus, gather=gather))


def make_level(conf: cfg.ConfigOpts, database: Database) -> Level:
    """Make the choice of messages' version, by [upgrade_levels] conductor and the conductors' reports."""

    def spoken() -> set[str]:
        rows = database.read(conductors.list_all)
        return {c.rpc_version for c in conductors.may_rejoin(rows, database.clock())}

    return Level(spoken, pin=lambda: Settings(conf).upgrade.pin)


def make_bus(
    conf: cfg.ConfigOpts, recorder: Recorder = SILENT, level: Level | None = None, *, url: str | None = None
) -> Bus:
    """Open the message bus.

    :param level: the choice of messages' version; None: the oldest.
    :param url: address of the broker; None: that of the configuration.
    :raises WrongConfiguration: the URL is malformed, or an option that another one needs is missing.
    """
    try:
        bus = open_bus(conf, url or conf.transport_url, recorder, level)
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


def make_notifier(conf: cfg.ConfigOpts) -> Notifications | None:
    """Make the sender of notifications; None: no driver is configured.

    :raises WrongConfiguration: a driver does not exist, or has no broker.
    """
    settings = Settings(conf).notifications
    publisher = settings.publisher or f"{SERVICE}.{Settings(conf).host.host}"
    section = "[oslo_messaging_notifications]"
    unknown = sorted({*conf.oslo_messaging_notifications.driver} - (drivers := _notification_drivers()))
    if unknown:
        raise WrongConfiguration(
            f"{section} driver: unknown: {', '.join(unknown)}; known: {', '.join(sorted(drivers))}"
        )
    url = conf.transport_url
    try:
        opened = open_notifier(conf, publisher=publisher, level=settings.level, url=url)
    except (ValueError, oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as error:
        raise WrongConfiguration(f"{section} transport_url: {error}") from error
    return None if opened is None else Notifications(*opened)


def _notification_drivers() -> set[str]:
    return {point.name for point in importlib.metadata.entry_points(group="oslo.messaging.notify.drivers")}
