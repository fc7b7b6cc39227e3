"""The API behind Keystone: the middleware in front, the policy inside."""

import logging
import typing

from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from ...api.authenticator import Authenticator, NoAuthentication
from ...api.collaborators import Exchange
from ...api.keystone import KeystoneAuthentication
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .policy import Enforcer, list_rules
from .service_account import KEYSTONE_ANSWERS_WITHIN, SECTION, middleware, register_options
from .trusts import make_ec2_tokens

POLICY_FILE = "policy.yaml"
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
    enforcer = Enforcer(conf)
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


def behind_keystone(app: WsgiApp, conf: cfg.ConfigOpts) -> WsgiApp:
    """Put Keystone's middleware in front of the application, if [api] auth_strategy is keystone.

    :raises WrongConfiguration: an option that the middleware needs is missing.
    """
    if not Settings(conf).auth.has_keystone:
        return app
    register_options(conf)
    conf.set_default("http_connect_timeout", KEYSTONE_ANSWERS_WITHIN, SECTION)
    return middleware().in_front_of(app, conf, SECTION)
