"""Building the parts of a process from its configuration."""

import importlib.metadata
from dataclasses import dataclass

import oslo_messaging
from oslo_config import cfg

from ...db.engine import Database
from ...engine.compile import GoalCompiler
from ...engine.context import EngineContext, EngineSettings
from ...keystone.delegated_auth import NO_DEFERRAL, Deferral
from ...keystone.delegations import Delegations
from ...observe.recorder import SILENT, Recorder
from ...planning.plan import Defaults
from ...resources.registry import ResourceRegistry
from ...rpc.bus import Bus
from ...rpc.level import Level
from ...rpc.notifier import Notifier
from ...rpc.outbox import Outbox
from ...sandbox.pool import HelperPool, install
from ...sealing.sealer import Sealer
from ...sealing.signal_urls import SignalAddresses
from ...template.budget import BudgetLimits
from ...template.compile import Limits
from ..config.options import WrongConfiguration
from ..config.signal_options import signal_limits
from ..config.yaql_options import helper_limits
from .connections import (
    binds_tokens,
    database_troubles,
    make_addresses,
    make_bus,
    make_level,
    make_notifier,
    make_sealer,
    open_database,
)

DEFERRAL_METHODS = "stoker.deferred_auth_methods"
"""Entry points: functions from the configuration to a Deferral."""


@dataclass(frozen=True)
class Parts:
    """What all roles share."""

    conf: cfg.ConfigOpts
    database: Database
    shard_count: int
    catalogue: ResourceRegistry
    sealer: Sealer
    bus: Bus
    helpers: HelperPool
    level: Level
    outbox: Outbox
    recorder: Recorder
    addresses: SignalAddresses
    deferral: Deferral = NO_DEFERRAL
    notifier: tuple[Notifier, oslo_messaging.Transport] | None = None

    def close(self) -> None:
        """Send what waits, and disconnect."""
        self.outbox.stop()
        if self.notifier is not None:
            self.notifier[0].stop()
            self.notifier[1].cleanup()
        self.bus.close()
        self.database.close()
        self.helpers.close()


def open_parts(conf: cfg.ConfigOpts, recorder: Recorder = SILENT) -> Parts:
    """Connect to the database and the message bus, and start the process that evaluates expressions.

    :param recorder: is told what is worth counting.

    :raises WrongConfiguration: an option is missing or wrong.
    """
    make_sealer(conf)
    helpers = install(helper_limits(conf))
    notifier = make_notifier(conf)
    listener = None if notifier is None else notifier[0].tell
    database, shard_count = open_database(conf, listener, database_troubles(recorder))
    sealer = make_sealer(conf, binds_tokens(database))
    addresses = make_addresses(conf, database, sealer)
    catalogue = ResourceRegistry.installed()
    deferral = _make_deferral(conf, catalogue)
    level = make_level(conf, database)
    bus = make_bus(conf, recorder, level)
    outbox = Outbox(bus)
    outbox.start()
    if notifier is not None:
        notifier[0].start()
    helpers.warm()
    return Parts(
        conf=conf,
        database=database,
        shard_count=shard_count,
        catalogue=catalogue,
        sealer=sealer,
        bus=bus,
        helpers=helpers,
        outbox=outbox,
        recorder=recorder,
        addresses=addresses,
        deferral=deferral,
        notifier=notifier,
        level=level,
    )


def _make_deferral(conf: cfg.ConfigOpts, catalogue: ResourceRegistry) -> Deferral:
    """As [stacks] deferred_auth_method says: a method is an entry point, loaded only where it is wanted, for
    its libraries would make every program start later.

    :raises WrongConfiguration: there is no such method, or its options are not complete.
    """
    method = conf.stacks.deferred_auth_method
    if "none" in (conf.api.auth_strategy, method) or not catalogue.uses_credentials:
        return NO_DEFERRAL
    found = {point.name: point for point in importlib.metadata.entry_points(group=DEFERRAL_METHODS)}
    if method not in found:
        known = ", ".join(sorted({"none", *found}))
        raise WrongConfiguration(f"[stacks] deferred_auth_method: there is no {method}; known are: {known}")
    made: Deferral = found[method].load()(conf)
    return made


def budget_limits(conf: cfg.ConfigOpts) -> BudgetLimits:
    """Return what one request may cost."""
    wanted = conf.stacks
    return BudgetLimits(wanted.max_compile_bytes, wanted.max_compile_steps, wanted.max_compile_seconds)


def _engine_settings(parts: Parts) -> EngineSettings:
    wanted = parts.conf.stacks
    return EngineSettings(
        shard_count=parts.shard_count,
        limits=Limits(wanted.max_template, wanted.max_resources, wanted.max_depth, budget_limits(parts.conf)),
        defaults=Defaults(
            wanted.resource_timeout,
            wanted.resource_retries,
            clock_stands=wanted.held_time == "stands",
            cancel_grace=wanted.cancel_grace,
        ),
        stack_timeout=wanted.timeout,
        max_snapshots=wanted.max_snapshots,
        signals=signal_limits(parts.conf),
    )


def make_engine_context(parts: Parts) -> EngineContext:
    """Return what the use cases are carried out with."""
    clock, settings = parts.database.clock, _engine_settings(parts)
    return EngineContext(
        database=parts.database,
        registry=parts.catalogue,
        sealer=parts.sealer,
        hints=parts.outbox,
        clock=clock,
        settings=settings,
        compiler=GoalCompiler(parts.catalogue, settings.limits),
        delegations=Delegations(
            database=parts.database, sealer=parts.sealer, deferral=parts.deferral, clock=clock
        ),
    )
