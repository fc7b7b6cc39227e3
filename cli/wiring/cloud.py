"""The checks of goals against the clouds of callers, from the configuration."""

from typing import Any

from keystoneauth1 import loading
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from oslo_config import cfg

from ...api.collaborators import Downloads
from ...db.engine import ServerClock
from ...engine.caller_services import CallerServices
from ...engine.cloud import ANSWERED_WITHIN, CloudChecks
from ...engine.cloud_questions import ServiceQuestions
from ...engine.container_files import ContainerFiles
from ...engine.template_urls import TemplateFetcher
from ..config.client_options import client_options
from ..config.sections import Settings
from .engine import fetch_limits
from .trusts import SECTION


def make_caller_services(conf: cfg.ConfigOpts, *, within: float) -> CallerServices:
    """Make the services of the callers of requests; no service is asked yet.

    :param within: seconds that a call may take.
    :raises WrongConfiguration: an option of [clients] is wrong.
    """
    loading.register_session_conf_options(conf, SECTION)

    def make_session(auth: BaseAuthPlugin, versions: dict[str, Any]) -> Session:
        session: Session = loading.load_session_from_conf_options(
            conf, SECTION, auth=auth, timeout=within, discovery_cache=versions
        )
        return session

    return CallerServices(client_options(conf), make_session, within=within)


def make_cloud_checks(conf: cfg.ConfigOpts, clock: ServerClock) -> CloudChecks:
    """Make the checks of goals against the clouds of callers; no cloud is asked yet.

    :raises WrongConfiguration: an option of [clients] is wrong.
    """
    return CloudChecks(
        options=client_options(conf),
        ask=ServiceQuestions(make_caller_services(conf, within=ANSWERED_WITHIN)).ask,
        enabled=lambda: Settings(conf).parameter_checks.check_parameters,
        clock=clock,
        monotonic=clock.monotonic,
    )


def make_downloads(conf: cfg.ConfigOpts) -> Downloads:
    """Make the functions that fetch the templates and files that requests name."""
    limits = fetch_limits(conf)
    loading.register_session_conf_options(conf, SECTION)

    def make_session(auth: BaseAuthPlugin) -> Session:
        session: Session = loading.load_session_from_conf_options(conf, SECTION, auth=auth)
        return session

    files = ContainerFiles(
        client_options(conf),
        make_session,
        max_bytes=Settings(conf).api_limits.body_bytes,
        seconds=limits.seconds,
    )
    return Downloads(template=TemplateFetcher(limits).fetch, files=files.read)
