"""The service's own account at Keystone, which acts for users by trusts."""

import time
import typing
from collections.abc import Callable

from keystoneauth1 import loading
from keystoneauth1.exceptions import ClientException, MissingRequiredOptions, NoMatchingPlugin
from keystoneauth1.session import Session
from oslo_config import cfg

from ...keystone.client_options import ClientOptions
from ...keystone.ec2_tokens import Ec2Tokens
from ...keystone.trusts import KeystoneTrusts
from ..config.errors import WrongConfiguration
from ..config.sections import Settings

SECTION = "trustee"
API_SECTION = "keystone_authtoken"
TIMEOUT = 30
"""Seconds within which Keystone must answer."""
REDISCOVERED = 3600.0
"""Seconds after which sessions ask the services again which versions they have."""
UNSCOPED = dict.fromkeys(
    (
        "project_id",
        "project_name",
        "project_domain_id",
        "project_domain_name",
        "domain_id",
        "domain_name",
        "system_scope",
    )
)


def make_trusts(conf: cfg.ConfigOpts) -> KeystoneTrusts:
    """Make the provider of trusts, without a request to Keystone.

    :raises WrongConfiguration: [trustee] is not complete.
    """
    session = _sessions(conf)

    try:
        session("trust")
    except (MissingRequiredOptions, NoMatchingPlugin, cfg.Error, TypeError, ValueError) as error:
        raise WrongConfiguration(
            f"[{SECTION}]: {error}; trusts need the service's own account with a password, as in "
            f"[{API_SECTION}], or set [stacks] deferred_auth_method to none"
        ) from error
    settings = Settings(conf).delegation
    return KeystoneTrusts(session, roles=settings.roles, redelegation=settings.allow_redelegation)


def make_ec2_tokens(conf: cfg.ConfigOpts) -> Ec2Tokens:
    """Make the exchange of requests signed with EC2 credentials for tokens, without a request to Keystone."""
    session = _sessions(conf)
    return Ec2Tokens(lambda: session(None))


class NoCatalog(Exception):
    """Keystone did not answer, or does not know the service's own account."""


def own_catalog(conf: cfg.ConfigOpts, options: ClientOptions) -> Callable[[str], bool]:
    """Return a function that says whether the catalog of the service's own account has a service.

    :raises NoCatalog: there is no catalog to be had.
    """
    try:
        session = _sessions(conf)(None)
        auth: typing.Any = session.auth
        catalog = auth.get_access(session).service_catalog
    except (ClientException, MissingRequiredOptions, NoMatchingPlugin) as error:
        raise NoCatalog(f"[{SECTION}]: {error}") from error

    def has_service(service_type: str) -> bool:
        settings = options.of(service_type)
        if settings.endpoint_override is not None:
            return True
        try:
            endpoints = catalog.get_endpoints_data(
                service_type=service_type, interface=settings.interface, region_name=settings.region_name
            )
        except ValueError:
            return False  # The catalog has two names of the service, and neither has such an endpoint.
        return any(endpoints.values())

    return has_service


def trustee_session(conf: cfg.ConfigOpts) -> Session:
    """Return a session of the service's account that acts for users, for its own project."""
    return _sessions(conf)(None)


def _sessions(conf: cfg.ConfigOpts) -> Callable[[str | None], Session]:
    """Return a function that makes sessions of the service's account, scoped to a trust if it has an id."""
    _register(conf)
    discovery = _Discovery()

    def session(trust: str | None) -> Session:
        scope = {} if trust is None else {**UNSCOPED, "trust_id": trust}
        auth = loading.load_auth_from_conf_options(conf, SECTION, **scope)
        session: Session = loading.load_session_from_conf_options(
            conf, SECTION, auth=auth, discovery_cache=discovery.current()
        )
        return session

    return session


class _Discovery:
    """The versions of the cloud's services, which all sessions share: each stack has a session of its own."""

    def __init__(self) -> None:
        self._found: dict[str, typing.Any] = {}
        self._since = time.monotonic()

    def current(self) -> dict[str, typing.Any]:
        """Return the cache for a new session: an upgraded service is seen after a while."""
        if time.monotonic() - self._since > REDISCOVERED:
            self._found = {}
            self._since = time.monotonic()
        return self._found


def _register(conf: cfg.ConfigOpts) -> None:
    loading.register_auth_conf_options(conf, API_SECTION)
    loading.register_auth_conf_options(conf, SECTION)
    loading.register_session_conf_options(conf, SECTION)
    conf.set_default("timeout", TIMEOUT, SECTION)
    if not conf[SECTION].auth_type:
        conf.set_default("auth_section", API_SECTION, SECTION)
