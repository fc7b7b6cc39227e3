"""``stoker-conductor``: the daemon."""

import logging
import sys
import time
import types
import typing

from ..daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip
from oslo_log import log

from ...conductor.service import Conductor
from ...observe.recorder import SILENT
from ..config import options
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from ..daemon.main_loop import OperatorSignal, SignalQueue, print_stacks_on_abort, run_main_loop
from ..daemon.main_thread import cannot_start, run
from ..daemon.systemd import Systemd
from ..daemon.version import VERSION
from ..wiring.conductor import make_conductor, start_conductor
from ..wiring.database import needed_at_start
from ..wiring.parts import Parts, open_parts
from ..wiring.reports import start_reports

if typing.TYPE_CHECKING:
    from ..http.server import HttpServer

LOG = logging.getLogger(__name__)
PROGRAM = "stoker-conductor"
READY_WITHIN = 60.0
SIGNAL_POLL = 0.5
"""Seconds between two polls for a signal while the ring does not let us in."""
STOP_MARGIN = 20.0
"""Seconds that a stop may take beyond those that are known: transactions of a slow database."""
TOO_MANY_HUNG_THREADS = 75
"""Exit code (sysexits.h: try again later)."""


class ConductorProcess:
    """A conductor as a daemon."""

    def __init__(
        self, conf: cfg.ConfigOpts, arguments: list[str], signals: SignalQueue, systemd: Systemd
    ) -> None:
        self.signals = signals
        self._conf = conf
        self._arguments = arguments
        self._systemd = systemd
        self._parts: Parts | None = None
        self._page: HttpServer | None = None
        self._conductor: Conductor | None = None

    @needed_at_start()
    def start(self) -> None:
        """Connect, and begin to work, see Daemon."""
        conf = self._conf
        metrics = _metrics() if Settings(conf).metrics.port else None
        recorder = SILENT if metrics is None else metrics.make_recorder(PROGRAM)
        self._parts = parts = open_parts(conf, recorder)
        conductor = make_conductor(
            parts,
            Settings(conf).host.host,
            on_too_many_hung=lambda: self.signals.put(OperatorSignal.REPLACE),
        )
        self.signals.report = start_reports(conf, PROGRAM, conductor.monitor.sections())
        if metrics is not None:
            self._page = metrics.serve_conductor(conf, conductor.monitor, recorder)
        start_conductor(parts, conductor)
        self._conductor = conductor

    def serve(self) -> int:
        """Serve until a stop is asked for, see Daemon."""
        conf = self._conf
        conductor = self._conductor
        assert conductor is not None
        event = OperatorSignal.STOP
        if _join(conductor, self.signals, self._systemd):
            LOG.info("stoker-conductor %s is in the ring and serves", conductor.host)
            self._systemd.ready(f"{conductor.host} is in the ring")
            event = run_main_loop(
                self.signals,
                self._systemd,
                reload=lambda: _reload(conf, conductor, self._arguments),
                late=conductor.monitor.liveness.late,
            )
        return TOO_MANY_HUNG_THREADS if event == OperatorSignal.REPLACE else 0

    def stop(self) -> bool:
        """Stop all parts that have started, see Daemon."""
        finished = True
        if (conductor := self._conductor) is not None:
            self._systemd.stopping(conductor.stops_within + STOP_MARGIN)
            finished = conductor.stop()
        if self._page is not None:
            self._page.stop()
        if self._parts is not None:
            self._parts.close()
        if conductor is not None:
            LOG.info("stoker-conductor %s has stopped", conductor.host)
        return finished


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the exit code is 0 after SIGTERM or SIGINT when all steps in progress had ended.

    It is 1 if the conductor could not start, failed, left a step behind, or if nobody reads its output any
    more; 75 if it ended by itself, to be restarted.
    """
    print_stacks_on_abort()
    words = sys.argv[1:] if arguments is None else arguments
    signals = SignalQueue()
    try:
        conf = options.load(words, program=PROGRAM)
        log.setup(conf, "stoker", VERSION)
    except (OSError, WrongConfiguration) as error:
        return cannot_start(PROGRAM, error)
    return run(PROGRAM, ConductorProcess(conf, words, signals, Systemd()))


def _metrics() -> types.ModuleType:
    """Import the recorder and the server of metrics, with their libraries: only where these have a port."""
    from ..wiring import metrics  # noqa: PLC0415

    return metrics


def _join(conductor: Conductor, signals: SignalQueue, systemd: Systemd) -> bool:
    """Wait, however long, until the conductor is in the ring; return False to stop before."""
    logged = time.monotonic()
    while not conductor.wait_ready(SIGNAL_POLL):
        systemd.waiting("not in the ring yet", READY_WITHIN)
        if signals.next(0.001) == OperatorSignal.STOP:
            return False
        if time.monotonic() - logged > READY_WITHIN:
            logged = time.monotonic()
            LOG.error("Conductor %s is not in the ring yet; retrying", conductor.host)
    return True


def _reload(conf: cfg.ConfigOpts, conductor: Conductor, arguments: list[str]) -> str:
    status = options.reload_options(conf, arguments, program=PROGRAM)
    settings = Settings(conf).conductor
    conductor.reconfigure(
        weight=settings.weight,
        drain=settings.drain,
        keep_deleted=settings.keep_deleted,
        keep_events=Settings(conf).upkeep.keep_events,
    )
    return status
