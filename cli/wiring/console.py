"""The collaborators of the API's routes for consoles."""

import typing
from collections.abc import Mapping

from oslo_config import cfg

from ...engine.context import EngineContext
from ...features.diagnosis.presence import FleetSettings
from ...features.diagnosis.services import ConsoleServices
from ..config.sections import Settings
from .coordination import conductors_in_group
from .parts import Parts


def fleet_settings(conf: cfg.ConfigOpts) -> FleetSettings:
    """Return the options for diagnoses of unfinished stacks."""
    timing = Settings(conf).coordination.timing
    takeover = 2 * (timing.timeout + timing.poll) + 1.0
    return FleetSettings(takeover=takeover, grace=Settings(conf).engine.defaults.cancel_grace)


def make_console(parts: Parts, context: EngineContext) -> Mapping[type, typing.Any]:
    """Make the collaborators of the routes for consoles.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    services = ConsoleServices(
        shard_count=context.settings.shard_count,
        fleet=fleet_settings(parts.conf),
        group=conductors_in_group(parts.conf),
    )
    return {ConsoleServices: services}
