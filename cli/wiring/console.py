"""The collaborators of the API's routes for consoles."""

from oslo_config import cfg

from ...api.console import ConsoleServices
from ...engine.diagnosis.presence import FleetSettings
from ...engine.planning.plan import Defaults
from ..config.sections import read
from .health import conductors_in_group
from .parts import Parts


def fleet_settings(conf: cfg.ConfigOpts) -> FleetSettings:
    """Return the options for diagnoses of unfinished stacks."""
    section = conf.coordination
    takeover = 2 * (section.timeout + section.poll) + 1.0
    return FleetSettings(takeover=takeover, grace=read(conf, Defaults).cancel_grace)


def make_console(parts: Parts) -> ConsoleServices:
    """Make the collaborators of the routes for consoles.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    return ConsoleServices(
        shard_count=parts.shard_count,
        fleet=fleet_settings(parts.conf),
        group=conductors_in_group(parts.conf),
    )
