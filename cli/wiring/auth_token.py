"""Keystone's middleware in front of the API."""

import importlib.util
import logging
import typing

from keystoneauth1.exceptions import ClientException, MissingRequiredOptions, NoMatchingPlugin
from keystonemiddleware import auth_token
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg

from ...api.presigned import is_presigned
from ..config.errors import WrongConfiguration
from ..http.request import Refusal

AWAY = Refusal(503, "Keystone is not available; try again later", "ServiceUnavailable")
WsgiApp = typing.Any
LOG = logging.getLogger(__name__)


def register_options(conf: cfg.ConfigOpts) -> None:
    """Register the options of the middleware."""
    for group, options in list_auth_token_opts():
        conf.register_opts(options, group)


def in_front_of(app: WsgiApp, conf: cfg.ConfigOpts, section: str) -> WsgiApp:
    """Put the middleware in front of the application.

    The middleware passes on a request without a valid token, and marks it: the application answers it itself,
    and some paths need no token.  A request with a signature does not reach the middleware.

    :param section: the section of the middleware's options.
    :raises WrongConfiguration: an option that the middleware needs is missing.
    """
    settings = {
        "oslo_config_config": conf,
        "delay_auth_decision": True,
        "service_token_roles_required": True,
    }
    try:
        guarded = auth_token.AuthProtocol(app, settings)
    except (MissingRequiredOptions, NoMatchingPlugin, cfg.Error, ValueError) as error:
        raise WrongConfiguration(f"[{section}]: {error}") from error

    # The middleware imports it at the first request, and would answer each request with an error.
    if conf[section].memcached_servers and importlib.util.find_spec("memcache") is None:
        raise WrongConfiguration(
            f"[{section}] memcached_servers: python-memcached is not installed: "
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
