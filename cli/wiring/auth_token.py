"""Keystone's middleware in front of the API."""

import importlib.util
import logging
import typing

from keystoneauth1.exceptions import (
    ClientException,
    ConnectFailure,
    DiscoveryFailure,
    MissingRequiredOptions,
    NoMatchingPlugin,
    RequestTimeout,
)
from keystonemiddleware import auth_token
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg

from ...api.presigned import is_presigned
from ..config.errors import WrongConfiguration
from ..http.request import Refusal

AWAY = Refusal(
    503,
    "The token was not checked: Keystone is not available, or refuses the account of this service; "
    "try again later",
    "ServiceUnavailable",
)
_UNANSWERED = (ConnectFailure, DiscoveryFailure, RequestTimeout)
WsgiApp = typing.Any
LOG = logging.getLogger(__name__)


class TokenUnchecked(Exception):
    """Keystone did not say whether a token is valid."""


class _Middleware(auth_token.AuthProtocol):  # type: ignore[misc]
    """Keystone's middleware, which takes no token for a wrong one that Keystone has not judged.

    With a delayed decision the original marks both alike, and its user would read that a good token is wrong.
    """

    def fetch_token(self, token: str, **options: typing.Any) -> typing.Any:
        """Return what Keystone says of a token.

        :raises TokenUnchecked: Keystone does not answer, or refuses the service's own account.
        """
        try:
            return super().fetch_token(token, **options)
        except auth_token.InvalidToken as error:
            if isinstance(error.__context__, (*_UNANSWERED, auth_token.ServiceError)):
                raise TokenUnchecked(str(error)) from error
            raise


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
        guarded = _Middleware(app, settings)
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
            # The middleware does not catch each error of its own account.
            except (ClientException, TokenUnchecked) as error:
                LOG.warning("Keystone does not check tokens, the request is refused: %s", error)
                status, headers, body = AWAY.to_response()
                start_response(status, headers)
                return [body]
        # A signature is no token: Keystone is not asked, and may be unavailable.  The client may have forged
        # the headers that name a user.
        return app({**environ, "HTTP_X_IDENTITY_STATUS": "Invalid"}, start_response)

    return dispatch
