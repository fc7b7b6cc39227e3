"""The pages of the console, and the guard against those of others, from the configuration."""

import functools
import logging
import socket

from keystoneauth1 import loading
from keystoneauth1.exceptions import MissingRequiredOptions, NoMatchingPlugin
from oslo_config import cfg

from ...api.origins import OriginGuard
from ...console.pages import Console
from ...keystone.login import KeystoneLogin
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .service_account import SECTION, make_session, register_options

LOG = logging.getLogger(__name__)


def make_pages(conf: cfg.ConfigOpts, version: str) -> Console | None:
    """Make the console; None: there is none.

    :raises WrongConfiguration: the service's own account at Keystone is not complete.
    """
    settings = Settings(conf)
    if not settings.api.console:
        return None
    if not settings.auth.has_keystone:
        return Console(version, horizon=settings.api.horizon_url)
    auth_url = _keystone(conf)
    if auth_url is None:
        LOG.warning("[%s] auth_url is missing: the console is disabled, because nobody could log in", SECTION)
        return None
    login = KeystoneLogin(auth_url, functools.partial(make_session, conf))
    return Console(version, login, horizon=settings.api.horizon_url)


def _keystone(conf: cfg.ConfigOpts) -> str | None:
    """Return Keystone's address for this process; None: the configuration names none."""
    register_options(conf)
    try:
        account = loading.load_auth_from_conf_options(conf, SECTION)
    except (MissingRequiredOptions, NoMatchingPlugin, cfg.Error, ValueError) as error:
        raise WrongConfiguration(f"[{SECTION}]: {error}") from error
    address: str | None = getattr(account, "auth_url", None) or conf[SECTION].www_authenticate_uri
    return address


def make_origin_guard(conf: cfg.ConfigOpts) -> OriginGuard | None:
    """Make the guard; None: Keystone's tokens protect the API."""
    settings = Settings(conf)
    if settings.auth.has_keystone:
        return None
    addresses = [settings.api.public_url, settings.guests.metadata_url, settings.guests.waitcondition_url]
    return OriginGuard(
        [settings.server.host, socket.gethostname(), *settings.api.allowed_hosts],
        [address for address in addresses if address],
    )
