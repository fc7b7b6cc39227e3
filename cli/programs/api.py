"""``stoker-api``: the REST service."""

import logging
import sys
import threading

from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip
from oslo_log import log

from ...api.request_log import RequestLog
from ..config import options
from ..config.reload import reload_options
from ..daemon.main_loop import SignalQueue, show_stacks_of_threads, stay
from ..daemon.main_thread import run
from ..daemon.systemd import Systemd
from ..daemon.version import VERSION
from ..http.serving import HttpServer, silence
from ..wiring.api import make_api, make_http, requests
from ..wiring.metrics import recorder_of_api, report_on_signal
from ..wiring.parts import Parts, open_parts

LOG = logging.getLogger(__name__)
PROGRAM = "stoker-api"
STOPS_WITHIN = 10.0
PROBE_WITHIN = 5.0
"""Seconds; an overloaded server is slow, a hanging one does not answer at all."""


class Api:
    """The API as a daemon."""

    def __init__(self, arguments: list[str]) -> None:
        self.signals = SignalQueue()
        self._arguments = arguments
        self._systemd = Systemd()
        self._draining = threading.Event()
        self._conf: cfg.ConfigOpts | None = None
        self._parts: Parts | None = None
        self._http: HttpServer | None = None

    def start(self) -> None:
        """Start to serve, see Daemon."""
        self._conf = conf = options.load(self._arguments, program=PROGRAM)
        log.setup(conf, "stoker", VERSION)
        self._parts = parts = open_parts(conf, recorder_of_api(conf, PROGRAM))
        watch = RequestLog(parts.recorder)
        report_on_signal(conf, PROGRAM, {"Requests": lambda: requests(watch)})
        app = make_api(parts, version=VERSION, watch=watch, draining=self._draining.is_set)
        http = make_http(app, conf, conf.api.bind_host, conf.api.bind_port)
        port = http.start()
        self._http = http
        LOG.info("stoker-api listens on %s:%s", conf.api.bind_host, port)
        self._systemd.ready(f"serves at {conf.api.bind_host}:{port}")

    def serve(self) -> int:
        """Serve until a stop is wanted, see Daemon."""
        conf, http = self._conf, self._http
        assert conf is not None
        assert http is not None
        stay(
            self.signals,
            self._systemd,
            reload=lambda: reload_options(conf, self._arguments, program=PROGRAM),
            late=silence(lambda: http.answers(PROBE_WITHIN)),
        )
        self._systemd.stopping(conf.api.drain + STOPS_WITHIN)
        self._draining.set()
        if conf.api.drain:
            self.signals.next(conf.api.drain)  # A second signal ends the waiting.
        return 0

    def stop(self) -> bool:
        """Stop what was started, see Daemon."""
        if self._http is not None:
            self._http.stop()
        if self._parts is not None:
            self._parts.close()
        return True


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after SIGTERM or SIGINT, 1 if it could not start, failed, or nobody reads
    its output any more."""
    show_stacks_of_threads()
    return run(PROGRAM, Api(sys.argv[1:] if arguments is None else arguments))
