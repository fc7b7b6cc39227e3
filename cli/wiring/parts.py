"""The parts that every role of a process shares: made from the configuration, and closed in order."""

import importlib.metadata
from dataclasses import dataclass

from oslo_config import cfg

from ...conductor.lookout import ANNOUNCE_EVERY
from ...db.engine import Commits, Database
from ...engine.signal_urls import SignalAddresses
from ...keystone.delegated_auth import NO_TRUSTS, TrustProvider
from ...observe.recorder import SILENT, Recorder
from ...resources.registry import ResourceRegistry
from ...sealing.sealer import Sealer
from ...template.sandbox.pool import HelperPool, install
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .database import count_troubles, open_database, require_configuration
from .environment_files import installed_types, with_operator_files
from .messaging import Messaging, Notifications, make_messaging, make_notifier
from .secrets import make_addresses, make_sealer

TRUST_METHODS = "stoker.deferred_auth_methods"
"""Entry points: functions from the configuration to a TrustProvider."""


@dataclass(frozen=True)
class Parts:
    """The parts that every role shares.

    :ivar commits: notifies its listeners of commits of this process.
    :ivar helpers: the processes that evaluate expressions.
    """

    conf: cfg.ConfigOpts
    database: Database
    commits: Commits
    shard_count: int
    catalogue: ResourceRegistry
    sealer: Sealer
    messaging: Messaging
    helpers: HelperPool
    recorder: Recorder
    addresses: SignalAddresses
    trusts: TrustProvider = NO_TRUSTS
    notifications: Notifications | None = None

    def start(self) -> None:
        """Start to send hints and notifications, each in a thread of its own."""
        self.messaging.outbox.start()
        if self.notifications is not None:
            self.notifications.notifier.start()

    def close(self) -> None:
        """Send the messages that wait, and disconnect."""
        self.messaging.outbox.stop()
        if self.notifications is not None:
            self.notifications.close()
        self.messaging.bus.close()
        self.database.close()
        self.helpers.close()


def open_parts(conf: cfg.ConfigOpts, recorder: Recorder = SILENT, *, gather: float = 0.0) -> Parts:
    """Make the parts, and start them; see `make_parts`."""
    parts = make_parts(conf, recorder, gather=gather)
    parts.start()
    return parts


def make_parts(conf: cfg.ConfigOpts, recorder: Recorder = SILENT, *, gather: float = 0.0) -> Parts:
    """Make the parts, and check the database; no thread is started yet.

    :param recorder: the recorder of metrics.
    :param gather: seconds in which hints share a message; see Outbox.
    :raises WrongConfiguration: an option is missing or wrong.
    """
    require_configuration(conf)
    make_sealer(conf)  # Checks the key before anything is opened.
    catalogue = with_operator_files(installed_types(conf), conf)
    helpers = install(Settings(conf).expressions)
    notifications = make_notifier(conf)
    listener = None if notifications is None else notifications.notifier.notify
    commits = Commits()
    database, shard_count = open_database(conf, listener, count_troubles(recorder), commits)
    sealer = make_sealer(conf)
    addresses = make_addresses(conf, database, sealer)
    trusts = make_trusts(conf, catalogue)
    messaging = make_messaging(conf, database, recorder, gather=gather)
    commits.listen(messaging.outbox.announce_activity, every=ANNOUNCE_EVERY)
    return Parts(
        conf=conf,
        database=database,
        commits=commits,
        shard_count=shard_count,
        catalogue=catalogue,
        sealer=sealer,
        messaging=messaging,
        helpers=helpers,
        recorder=recorder,
        addresses=addresses,
        trusts=trusts,
        notifications=notifications,
    )


def make_trusts(conf: cfg.ConfigOpts, catalogue: ResourceRegistry) -> TrustProvider:
    """Make the provider of later access for users, as [stacks] deferred_auth_method says.

    A method is an entry point that is loaded only where it is configured: its libraries would make every
    program start later.

    :raises WrongConfiguration: there is no such method, or its options are not complete.
    """
    method = Settings(conf).delegation.method
    if method == "none" or not Settings(conf).auth.has_keystone or not catalogue.uses_credentials:
        return NO_TRUSTS
    points = {point.name: point for point in importlib.metadata.entry_points(group=TRUST_METHODS)}
    if method not in points:
        names = ", ".join(sorted({"none", *points}))
        raise WrongConfiguration(f"[stacks] deferred_auth_method: {method} is unknown; known: {names}")
    trusts: TrustProvider = points[method].load()(conf)
    return trusts
