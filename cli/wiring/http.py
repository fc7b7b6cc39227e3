"""The HTTP server of the API, from the configuration."""

import typing

from oslo_config import cfg

from ..config.api_options import connection_limits, request_limits
from ..http.server import HttpServer


def make_http(app: typing.Any, conf: cfg.ConfigOpts, host: str, port: int) -> HttpServer:
    """Make the server of the API, not started yet."""
    return HttpServer(
        app,
        host=host,
        port=port,
        threads=conf.api.threads,
        requests=request_limits(conf),
        connections=connection_limits(conf),
    )
