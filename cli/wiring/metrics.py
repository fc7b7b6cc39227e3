"""Metrics and health of the daemons."""

import contextlib
import os
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping

from oslo_config import cfg

from ...conductor.monitor import Monitor
from ...features.registry import Feature, load
from ...observe import metrics
from ...observe.metrics import CONTENT_TYPE, Metric, Sample
from ...observe.prometheus import SHARED, Prometheus, share
from ...observe.recorder import SILENT, Recorder
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from ..daemon.version import VERSION
from ..features import FEATURES
from ..http.server import HttpServer

SCRAPES = 2
"""Requests to a conductor answered at the same time: Prometheus and a load balancer are two."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


def metrics_of(features: Iterable[Feature]) -> list[Metric]:
    """Return the metrics of the kernel and of some features, by name."""
    of_features = [metric for feature in features if feature.metrics for metric in load(feature.metrics)]
    return sorted([*metrics.METRICS, *of_features], key=lambda metric: metric.name)


def make_recorder(program: str) -> Prometheus:
    """Make a recorder, which also reports the release.

    :raises WrongConfiguration: the directory that several processes share cannot be used.
    """
    try:
        return Prometheus(
            program,
            metrics=metrics_of(FEATURES),
            gauges=lambda: [Sample(metrics.BUILD, 1, (VERSION, program))],
        )
    except OSError as error:
        raise WrongConfiguration(str(error)) from error


def recorder_of_api(conf: cfg.ConfigOpts) -> Recorder:
    """Make the recorder of a process that serves the API, as [metrics] api says.

    :raises WrongConfiguration: the directory that several processes share cannot be used.
    """
    return make_recorder(metrics.API) if Settings(conf).metrics.api else SILENT


@contextlib.contextmanager
def shared_metrics(conf: cfg.ConfigOpts) -> Iterator[None]:
    """Let the forks of this process share the metrics of the API, unless the operator has said where.

    They lie in a temporary directory, which is removed at the end.
    """
    if not Settings(conf).metrics.api or SHARED in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="stoker-metrics-", ignore_cleanup_errors=True) as directory:
        share(directory)
        yield


def text_of(recorder: Recorder) -> Callable[[], bytes] | None:
    """Return the function that makes the page of metrics; None: the recorder keeps none."""
    return recorder.text if isinstance(recorder, Prometheus) else None


class ConductorPage:
    """A WSGI application: ``/metrics`` and ``/healthcheck`` of a conductor.

    The health check answers 200 while the conductor serves, else 503 with a line for each problem.
    """

    def __init__(self, monitor: Monitor, text: Callable[[], bytes]) -> None:
        self._monitor = monitor
        self._text = text

    def __call__(self, environ: Mapping[str, typing.Any], start_response: StartResponse) -> Iterator[bytes]:
        """Answer a request (PEP 3333)."""
        status, kind, body = self._answer(str(environ.get("PATH_INFO", "/")))
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return iter([] if environ.get("REQUEST_METHOD") == "HEAD" else [body])

    def _answer(self, path: str) -> tuple[str, str, bytes]:
        plain = "text/plain; charset=utf-8"
        if path == "/metrics":
            return "200 OK", CONTENT_TYPE, self._text()
        if path != "/healthcheck":
            return "404 Not Found", plain, b"here are /metrics and /healthcheck\n"
        if problems := self._monitor.health_problems():
            return "503 Service Unavailable", plain, "".join(f"{line}\n" for line in problems).encode()
        return "200 OK", plain, b"serving\n"


def serve_conductor(conf: cfg.ConfigOpts, monitor: Monitor, recorder: Prometheus) -> HttpServer:
    """Start the conductor's server at [metrics] host and port.

    :raises WrongConfiguration: the address is in use, or not ours.
    """
    recorder.watch(monitor.samples)
    page = ConductorPage(monitor, recorder.text)
    settings = Settings(conf).metrics
    server = HttpServer(page, host=settings.host, port=settings.port, threads=SCRAPES)
    try:
        server.start()
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise WrongConfiguration(f"[metrics] port: {where} cannot be listened on: {error}") from error
    return server
