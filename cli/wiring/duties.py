"""The duties of a conductor, composed of the kernel's and those of the features, and their collaborators."""

import functools
from collections.abc import Callable, Iterable, Mapping

from oslo_config import cfg

from ...conductor.background import BackgroundPool
from ...conductor.duties.context import CurrentSettings, DutyContext, DutyServices, DutySettings
from ...conductor.duties.registry import DUTIES, DutyEntry
from ...conductor.event_queues import ZaqarQueues
from ...engine.updates import roll_back_stack
from ...features.registry import Feature, load
from ...keystone.service_clients import ServiceClients
from ..config.client_options import client_options
from ..config.sections import Settings
from .conductor_core import ConductorCore
from .endpoints import make_endpoints


def duties_of(
    features: Iterable[Feature], conf: cfg.ConfigOpts, services: DutyServices
) -> Mapping[str, DutyEntry]:
    """Return the duties of the kernel and of some features, by name."""
    duties = dict(DUTIES)
    for feature in features:
        if feature.duties:
            duties.update(load(feature.duties)(Settings(conf).of_feature(feature), services))
    return duties


def duty_services(core: ConductorCore) -> DutyServices:
    """Return the collaborators from which the duties of features make their own."""
    return DutyServices(
        context=core.context,
        host=core.membership.me.host,
        endpoints=make_endpoints(core.parts.conf),
        recorder=core.parts.recorder,
    )


def duty_settings(core: ConductorCore) -> DutySettings:
    """Return the settings of this moment."""
    timing = core.membership.timing
    return DutySettings(
        host=core.membership.me.host,
        cancel_grace=core.context.settings.defaults.cancel_grace,
        task_losses=core.upkeep.task_losses,
        # Longer than a view can be old: a member that joined a moment ago is no absent one.
        patience=2 * (timing.timeout + timing.poll),
        keep_deleted=core.settings.keep_deleted,
        keep_events=core.upkeep.keep_events,
    )


def duty_context(
    core: ConductorCore, settings: CurrentSettings, background: Callable[[str], BackgroundPool]
) -> DutyContext:
    """Return the collaborators of the duties.

    :param background: returns a pool for long work; see `DutyContext`.
    """
    database = core.parts.database
    clients = ServiceClients(client_options(core.parts.conf))
    return DutyContext(
        database=database,
        ring=core.ownership,
        hints=core.parts.messaging.outbox,
        clock=database.clock,
        settings=settings,
        roll_back=functools.partial(roll_back_stack, core.context),
        revoke=core.context.delegations.revoke,
        post=ZaqarQueues(core.context.delegations.session, clients).post,
        background=background,
        recorder=core.parts.recorder,
        monotonic=database.clock.monotonic,
    )
