"""``stoker-api``: the REST service."""

import logging
import sys
import threading

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from ..api.watching import Watch
from . import options
from .observing import recorder_of_api, report_on_signal
from .options import WrongConfiguration
from .reloading import reload_options
from .serving import silence
from .systemd import Systemd
from .version import VERSION
from .waiting import Signals, end_process, show_stacks_of_threads, stay
from .wiring import open_parts
from .wiring_api import make_api, make_http, requests

LOG = logging.getLogger(__name__)
PROGRAM = "stoker-api"
STOPS_WITHIN = 10.0
PROBE_WITHIN = 5.0
"""Seconds; an overloaded server is slow, a hanging one does not answer at all."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after SIGTERM or SIGINT, 1 if it could not start."""
    arguments = sys.argv[1:] if arguments is None else arguments
    signals, systemd, draining = Signals(), Systemd(), threading.Event()
    show_stacks_of_threads()
    try:
        conf = options.load(arguments, program=PROGRAM)
        log.setup(conf, "stoker", VERSION)
        parts = open_parts(conf, recorder_of_api(conf, PROGRAM))
        watch = Watch(parts.recorder)
        report_on_signal(conf, PROGRAM, {"Requests": lambda: requests(watch)})
        app = make_api(parts, version=VERSION, watch=watch, draining=draining.is_set)
        http = make_http(app, conf, conf.api.bind_host, conf.api.bind_port)
        port = http.start()
    except (OSError, WrongConfiguration) as error:
        print(f"stoker-api: cannot start: {error}", file=sys.stderr)
        return 1
    LOG.info("stoker-api listens on %s:%s", conf.api.bind_host, port)
    systemd.ready(f"serves at {conf.api.bind_host}:{port}")
    stay(
        signals,
        systemd,
        reload=lambda: reload_options(conf, arguments, program=PROGRAM),
        late=silence(lambda: http.answers(PROBE_WITHIN)),
    )
    systemd.stopping(conf.api.drain + STOPS_WITHIN)
    draining.set()
    if conf.api.drain:
        signals.next(conf.api.drain)  # A second signal ends the waiting.
    http.stop()
    parts.close()
    return end_process(0)
