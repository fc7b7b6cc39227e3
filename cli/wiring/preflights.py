"""The preflight that the API's handlers ask, from the configuration."""

import typing
from collections.abc import Mapping

from keystoneauth1 import loading
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session

from ...api.collaborators import Preflight
from ...engine.context import EngineContext
from ...features.preflight.api import ApiPreflight
from ...features.preflight.check import CloudPreflight
from ...features.preflight.reader import ANSWERED_WITHIN, CloudReaders
from ...features.preflight.services import ServiceReadings
from ...template.environment import PreflightMode
from ..config.client_options import client_options
from ..config.sections import Settings
from .parts import Parts
from .trusts import SECTION


def make_preflight(parts: Parts, context: EngineContext) -> Mapping[type, typing.Any]:
    """Return the preflight by its interface, as `Feature.services`; no service is asked yet.

    :raises WrongConfiguration: an option of [clients] is wrong.
    """
    conf = parts.conf
    loading.register_session_conf_options(conf, SECTION)

    def make_session(auth: BaseAuthPlugin, versions: dict[str, typing.Any]) -> Session:
        session: Session = loading.load_session_from_conf_options(
            conf, SECTION, auth=auth, timeout=ANSWERED_WITHIN, discovery_cache=versions
        )
        return session

    readings = ServiceReadings(client_options(conf), make_session)
    readers = CloudReaders(
        ask=readings.ask, has_service=readings.has_service, monotonic=parts.database.clock.monotonic
    )
    preflight = CloudPreflight(context, readers)
    return {Preflight: ApiPreflight(preflight, lambda: PreflightMode(Settings(conf).preflight.mode))}
