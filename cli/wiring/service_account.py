"""The service's own account at Keystone: its options, and sessions with its certificates.

Conductors use it without the policy of the API, which keystone.py has.
"""

import types

from keystoneauth1 import loading
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from oslo_config import cfg

from ..config.errors import WrongConfiguration

SECTION = "keystone_authtoken"
KEYSTONE_ANSWERS_WITHIN = 10
"""Seconds for one attempt to validate a token, unless http_connect_timeout is set.  The middleware's own
default is no limit, so a silent Keystone would occupy one thread of the API after the other."""


def register_options(conf: cfg.ConfigOpts) -> None:
    """Register the options of Keystone's middleware and of the service's own account.

    :raises WrongConfiguration: there is no account.
    """
    loading.register_auth_conf_options(conf, SECTION)
    if not conf[SECTION].auth_type and not conf[SECTION].auth_section:
        raise WrongConfiguration(
            f"[{SECTION}] auth_type is missing: the service's own account at Keystone; or, for a service "
            "that everybody may use, set [api] auth_strategy to none"
        )
    middleware().register_options(conf)


def make_session(conf: cfg.ConfigOpts, auth: BaseAuthPlugin | None) -> Session:
    """Make a session with Keystone, by the certificates of the service's own account.

    :param auth: the account.
    """
    options = conf[SECTION]
    certificate = (options.certfile, options.keyfile) if options.certfile and options.keyfile else None
    verify = False if options.insecure else options.cafile or True
    return Session(auth=auth, verify=verify, cert=certificate, timeout=KEYSTONE_ANSWERS_WITHIN)


def middleware() -> types.ModuleType:
    """Import the middleware: with a client, a cache and a framework it has 150 modules, for Keystone only."""
    from . import auth_token  # noqa: PLC0415

    return auth_token
