"""The preflight that the API's handlers ask, from the configuration."""

import typing
from collections.abc import Mapping

from ...api.collaborators import Preflight
from ...engine.context import EngineContext
from ...features.preflight.api import ApiPreflight
from ...features.preflight.check import CloudPreflight
from ...features.preflight.reader import ANSWERED_WITHIN, CloudReaders
from ...features.preflight.services import ServiceReadings
from ...template.environment import PreflightMode
from ..config.sections import Settings
from .cloud import make_caller_services
from .parts import Parts


def make_preflight(parts: Parts, context: EngineContext) -> Mapping[type, typing.Any]:
    """Return the preflight by its interface, as `Feature.services`; no service is asked yet.

    :raises WrongConfiguration: an option of [clients] is wrong.
    """
    conf = parts.conf
    services = make_caller_services(conf, within=ANSWERED_WITHIN)
    readers = CloudReaders(
        ask=ServiceReadings(services).ask, has_service=services.has, monotonic=parts.database.clock.monotonic
    )
    preflight = CloudPreflight(context, readers)
    return {Preflight: ApiPreflight(preflight, lambda: PreflightMode(Settings(conf).preflight.mode))}
