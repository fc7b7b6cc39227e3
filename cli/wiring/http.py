"""The HTTP server of the API, from the configuration."""

import re
import typing

from oslo_config import cfg

from ..config.api_options import connection_limits, request_limits
from ..http.limits import Fairness
from ..http.memory import trimming
from ..http.server import HttpServer

_PROJECT = re.compile(r"/+v1/+(?:guest/+)?([^/]+)/")
_SIGNED = frozenset({"signal", "waitcondition", "identity"})
"""Path segments in the place of a project: of requests whose signer nobody knows yet.  All of them, and those
to the CloudFormation API, have the share of one project."""


def make_http(app: typing.Any, conf: cfg.ConfigOpts, host: str, port: int) -> HttpServer:
    """Make the server of the API, not started yet."""
    return HttpServer(
        trimming(app),
        host=host,
        port=port,
        threads=conf.api.threads,
        requests=request_limits(conf),
        connections=connection_limits(conf),
        fairness=Fairness(
            _project_of,
            share=conf.api.threads_per_project,
            most_waiting=max(conf.api.threads, conf.api.max_connections // 4),
        ),
    )


def _project_of(path: str) -> str:
    match = _PROJECT.match(path)
    return "" if match is None or match[1] in _SIGNED else match[1]
