"""The HTTP server of the API, from the configuration."""

import re
import typing
from dataclasses import replace

from oslo_config import cfg

from ..config.sections import Settings
from ..http.limits import Fairness
from ..http.memory import trimming
from ..http.server import HttpServer

_PROJECT = re.compile(r"/+v1/+(?:guest/+)?([^/]+)/")
_SIGNED = frozenset({"signal", "waitcondition", "identity"})
"""Path segments in the place of a project: of requests whose signer nobody knows yet.  All of them, and those
to the CloudFormation API, have the share of one project."""


def make_http(app: typing.Any, conf: cfg.ConfigOpts, host: str, port: int) -> HttpServer:
    """Make the server of the API, not started yet."""
    settings = Settings(conf)
    return HttpServer(
        trimming(app),
        host=host,
        port=port,
        threads=settings.server.threads,
        requests=replace(settings.requests, body=settings.api_limits.body_bytes),
        connections=settings.connections,
        fairness=Fairness(
            _project_of,
            share=settings.server.threads_per_project,
            most_waiting=max(settings.server.threads, settings.connections.total // 4),
        ),
    )


def _project_of(path: str) -> str:
    match = _PROJECT.match(path)
    return "" if match is None or match[1] in _SIGNED else match[1]
