"""The API behind Keystone: the middleware in front, the policy inside."""

import importlib.util
import logging
import typing

from keystoneauth1 import loading
from keystoneauth1.exceptions import ClientException, MissingRequiredOptions, NoMatchingPlugin
from keystonemiddleware import auth_token
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from ...api.authenticator import Authenticator, NoAuthentication
from ...api.collaborators import Exchange
from ...api.keystone import KeystoneAuthentication
from ...api.policy import list_rules
from ...api.presigned import is_presigned
from ..config.errors import WrongConfiguration
from ..http.request import Refusal
from .trusts import make_ec2_tokens

SECTION = "keystone_authtoken"
POLICY_FILE = "policy.yaml"
KEYSTONE_ANSWERS_WITHIN = 10
"""Seconds for one attempt to validate a token, unless http_connect_timeout is set.  The middleware's own
default is no limit, so a silent Keystone would occupy one thread of the API after the other."""
AWAY = Refusal(503, "Keystone is not available; try again later", "ServiceUnavailable")
WsgiApp = typing.Any
LOG = logging.getLogger(__name__)


def make_auth(conf: cfg.ConfigOpts) -> Authenticator:
    """Return the authenticator that [api] auth_strategy names.

    :raises WrongConfiguration: the policy file is missing or malformed.
    """
    if conf.api.auth_strategy == "none":
        LOG.warning("[api] auth_strategy is none: the API does not authenticate its users")
        return NoAuthentication()
    return KeystoneAuthentication(make_enforcer(conf))


def make_ec2(conf: cfg.ConfigOpts) -> Exchange | None:
    """Return the exchange of requests signed with EC2 credentials; None: nobody is authenticated."""
    return None if conf.api.auth_strategy == "none" else make_ec2_tokens(conf).headers


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
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group)


def behind_keystone(app: WsgiApp, conf: cfg.ConfigOpts) -> WsgiApp:
    """Put Keystone's middleware in front of the application, if [api] auth_strategy is keystone.

    The middleware passes on a request without a valid token, and marks it: the application answers it itself,
    and some paths need no token.  A request with a signature does not reach the middleware.

    :raises WrongConfiguration: an option that the middleware needs is missing.
    """
    if conf.api.auth_strategy == "none":
        return app
    register_options(conf)
    conf.set_default("http_connect_timeout", KEYSTONE_ANSWERS_WITHIN, SECTION)
    settings = {
        "oslo_config_config": conf,
        "delay_auth_decision": True,
        "service_token_roles_required": True,
    }
    try:
        guarded = auth_token.AuthProtocol(app, settings)
    except (MissingRequiredOptions, NoMatchingPlugin, cfg.Error, ValueError) as error:
        raise WrongConfiguration(f"[{SECTION}]: {error}") from error

    # The middleware imports it at the first request, and would answer each request with an error.
    if conf[SECTION].memcached_servers and importlib.util.find_spec("memcache") is None:
        raise WrongConfiguration(
            f"[{SECTION}] memcached_servers: python-memcached is not installed: "
            "pip install 'stoker[memcached]'"
        )

    def dispatch(environ: dict[str, typing.Any], start_response: typing.Any) -> typing.Any:
        if not is_presigned(environ.get("PATH_INFO", "")):
            try:
                return guarded(environ, start_response)
            except ClientException as error:  # The middleware does not catch errors of its own account.
                LOG.warning("Keystone is unavailable, the request is refused: %s", error)
                status, headers, body = AWAY.to_response()
                start_response(status, headers)
                return [body]
        # A signature is no token: Keystone is not asked, and may be unavailable.  The client may have forged
        # the headers that name a user.
        return app({**environ, "HTTP_X_IDENTITY_STATUS": "Invalid"}, start_response)

    return dispatch
