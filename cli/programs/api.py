"""``stoker-api``: the REST service."""

import gc
import logging
import socket
import sys
import threading
import typing
from dataclasses import dataclass

from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip
from oslo_log import log

from ...api.app import RequestLog
from ..config import options
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from ..daemon.main_loop import SignalQueue, end_process, print_stacks_on_abort, run_main_loop
from ..daemon.main_thread import cannot_start, run
from ..daemon.memory import limit_arenas
from ..daemon.systemd import Systemd
from ..daemon.version import VERSION
from ..daemon.workers import WorkerSettings, run_workers
from ..http.server import HttpServer, listen, unanswered
from ..wiring.api import make_api, requests
from ..wiring.database import needed_at_start, require_configuration
from ..wiring.http import make_http
from ..wiring.messaging import GATHER
from ..wiring.metrics import recorder_of_api, shared_metrics, text_of
from ..wiring.parts import Parts, make_parts
from ..wiring.reports import start_reports

LOG = logging.getLogger(__name__)
PROGRAM = "stoker-api"
STOPS_WITHIN = 10.0
PROBE_WITHIN = 5.0
"""Seconds; an overloaded server is slow, a hanging one does not answer at all."""


@dataclass(frozen=True)
class ApiService:
    """The API without connections and threads: what a process makes once, and its forks continue with.

    :ivar draining: set while the process answers its last requests.
    """

    parts: Parts
    log: RequestLog
    app: typing.Any
    draining: threading.Event


@needed_at_start()
def make_service(conf: cfg.ConfigOpts) -> ApiService:
    """Make the service, and check the database.

    :raises WrongConfiguration: an option is missing or wrong, or the database cannot be used.
    """
    parts = make_parts(conf, recorder_of_api(conf), gather=GATHER)
    request_log = RequestLog(parts.recorder)
    draining = threading.Event()
    app = make_api(
        parts,
        version=VERSION,
        log=request_log,
        draining=draining.is_set,
        metrics_text=text_of(parts.recorder),
    )
    parts.database.close()  # Two processes on one connection would mix their statements.
    return ApiService(parts, request_log, app, draining)


class Api:
    """The API as a daemon.

    :param listener: a socket that the parent process listens on; None: the daemon opens its own.
    :param service: the service that the parent process has made; None: the daemon makes its own.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        arguments: list[str],
        signals: SignalQueue,
        systemd: Systemd,
        listener: socket.socket | None = None,
        service: ApiService | None = None,
    ) -> None:
        self.signals = signals
        self._conf = conf
        self._arguments = arguments
        self._systemd = systemd
        self._listener = listener
        self._service = service
        self._http: HttpServer | None = None

    def start(self) -> None:
        """Listen for requests, see Daemon."""
        conf = self._conf
        self._service = service = self._service or make_service(conf)
        service.parts.start()
        self.signals.report = start_reports(conf, PROGRAM, {"Requests": lambda: requests(service.log)})
        server = Settings(conf).server
        http = make_http(service.app, conf, server.host, server.port)
        port = http.start(self._listener)
        self._http = http
        LOG.info("stoker-api listens on %s:%s", server.host, port)
        self._systemd.ready(f"serves at {server.host}:{port}")

    def serve(self) -> int:
        """Serve until a stop is asked for, see Daemon."""
        service = self._service
        http = self._http
        assert service is not None
        assert http is not None
        run_main_loop(
            self.signals,
            self._systemd,
            reload=lambda: options.reload_options(self._conf, self._arguments, program=PROGRAM),
            late=unanswered(lambda: http.answers(PROBE_WITHIN)),
        )
        drain = Settings(self._conf).api.drain
        self._systemd.stopping(drain + STOPS_WITHIN)
        service.draining.set()
        if drain:
            self.signals.next(drain)  # A second signal ends the waiting.
        return 0

    def stop(self) -> bool:
        """Stop all parts that have started, see Daemon."""
        if self._http is not None:
            self._http.stop()
        if self._service is not None:
            self._service.parts.close()
        return True


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit code is 0 after SIGTERM or SIGINT.

    It is 1 if the API could not start, failed, or if nobody reads its output any more.
    """
    print_stacks_on_abort()
    words = sys.argv[1:] if arguments is None else arguments
    signals = SignalQueue()
    try:
        conf = options.load(words, program=PROGRAM)
        log.setup(conf, "stoker", VERSION)
        if (count := Settings(conf).server.processes) > 1:
            return _run_workers(conf, words, signals, count)
    except (OSError, WrongConfiguration) as error:
        return cannot_start(PROGRAM, error)
    return run(PROGRAM, Api(conf, words, signals, Systemd()))


def _run_workers(conf: cfg.ConfigOpts, arguments: list[str], signals: SignalQueue, count: int) -> int:
    limit_arenas()  # Before the launcher starts threads.
    require_configuration(conf)  # Else the default port, which may be taken, is what the error is about.
    server = Settings(conf).server
    listener = listen(server.host, server.port)
    port = listener.getsockname()[1]
    settings = WorkerSettings(
        PROGRAM,
        count=count,
        stops_within=Settings(conf).api.drain + STOPS_WITHIN,
        status=f"serves at {server.host}:{port} with {count} worker processes",
    )
    with shared_metrics(conf):
        service = make_service(conf)
        # Else the collector of each process writes to the objects that it walks over, and copies their pages.
        gc.collect()
        gc.freeze()
        code = run_workers(
            settings,
            conf,
            signals,
            make=lambda events, systemd: Api(conf, arguments, events, systemd, listener, service),
            reload=lambda: options.reload_options(conf, arguments, program=PROGRAM),
            listener=listener,
        )
    return end_process(code)
