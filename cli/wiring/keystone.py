"""The API behind Keystone: the middleware in front, the policy inside."""

import logging
import types
import typing

from keystoneauth1 import loading
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session
from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from ...api.authenticator import Authenticator, NoAuthentication
from ...api.collaborators import Exchange
from ...api.keystone import KeystoneAuthentication
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .policy import list_rules
from .trusts import make_ec2_tokens

SECTION = "keystone_authtoken"
POLICY_FILE = "policy.yaml"
KEYSTONE_ANSWERS_WITHIN = 10
"""Seconds for one attempt to validate a token, unless http_connect_timeout is set.  The middleware's own
default is no limit, so a silent Keystone would occupy one thread of the API after the other."""
WsgiApp = typing.Any
LOG = logging.getLogger(__name__)


def make_auth(conf: cfg.ConfigOpts) -> Authenticator:
    """Return the authenticator that [api] auth_strategy names.

    :raises WrongConfiguration: the policy file is missing or malformed.
    """
    if not Settings(conf).auth.has_keystone:
        LOG.warning("[api] auth_strategy is none: the API does not authenticate its users")
        return NoAuthentication()
    return KeystoneAuthentication(make_enforcer(conf))


def make_ec2(conf: cfg.ConfigOpts) -> Exchange | None:
    """Return the exchange of requests signed with EC2 credentials; None: nobody is authenticated."""
    return None if not Settings(conf).auth.has_keystone else make_ec2_tokens(conf).headers


def make_enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    """Return the policy's rules, with those of the operator from [oslo_policy] policy_file.

    :raises WrongConfiguration: the policy file is missing or malformed.
    """
    policy_opts.set_defaults(conf, POLICY_FILE)
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    try:
        enforcer.load_rules()
        sound = enforcer.check_rules()
    except (cfg.Error, ValueError, OSError, policy.PolicyNotRegistered) as error:
        raise WrongConfiguration(f"[oslo_policy] policy_file: {error}") from error
    if not sound:
        raise WrongConfiguration("[oslo_policy] policy_file: it names rules that do not exist; see the log")
    return enforcer


def get_enforcer() -> policy.Enforcer:
    """Return the enforcer for oslo.policy's tools (oslopolicy-checker and others)."""
    conf = cfg.CONF
    conf([], project="stoker")
    return make_enforcer(conf)


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
    _middleware().register_options(conf)


def make_session(conf: cfg.ConfigOpts, auth: BaseAuthPlugin | None) -> Session:
    """Make a session with Keystone, by the certificates of the service's own account.

    :param auth: the account.
    """
    options = conf[SECTION]
    certificate = (options.certfile, options.keyfile) if options.certfile and options.keyfile else None
    verify = False if options.insecure else options.cafile or True
    return Session(auth=auth, verify=verify, cert=certificate, timeout=KEYSTONE_ANSWERS_WITHIN)


def behind_keystone(app: WsgiApp, conf: cfg.ConfigOpts) -> WsgiApp:
    """Put Keystone's middleware in front of the application, if [api] auth_strategy is keystone.

    :raises WrongConfiguration: an option that the middleware needs is missing.
    """
    if not Settings(conf).auth.has_keystone:
        return app
    register_options(conf)
    conf.set_default("http_connect_timeout", KEYSTONE_ANSWERS_WITHIN, SECTION)
    return _middleware().in_front_of(app, conf, SECTION)


def _middleware() -> types.ModuleType:
    """Import the middleware: with a client, a cache and a framework it has 150 modules, for Keystone only."""
    from . import auth_token  # noqa: PLC0415

    return auth_token
