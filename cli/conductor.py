"""``stoker-conductor``: the daemon."""

import logging
import sys
import time

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_config import cfg  # isort: skip
from oslo_log import log

from ..conductor.service import Conductor
from ..observe.recorder import SILENT
from . import options
from .observing import make_recorder, report_on_signal, serve_conductor
from .options import WrongConfiguration
from .reloading import reload_options
from .systemd import Systemd
from .version import VERSION
from .waiting import Signals, Wanted, end_process, show_stacks_of_threads, stay
from .wiring import make_conductor, open_parts, start_conductor

LOG = logging.getLogger(__name__)
PROGRAM = "stoker-conductor"
READY_WITHIN = 60.0
LOOK_EVERY = 0.5
"""Seconds between two looks for a signal while the ring does not let us in."""
STOP_MARGIN = 20.0
"""Seconds that a stop may take beyond those that are known: transactions of a slow database."""
WORN_OUT = 75
"""Exit code (sysexits.h: try again later)."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after SIGTERM or SIGINT when all steps in progress had ended, 1 if it
    could not start or some had not, 75 if it ended by itself to be started anew."""
    arguments = sys.argv[1:] if arguments is None else arguments
    signals, systemd = Signals(), Systemd()
    show_stacks_of_threads()
    try:
        conf = options.load(arguments, program=PROGRAM)
        log.setup(conf, "stoker", VERSION)
        recorder = make_recorder(PROGRAM) if conf.metrics.port else None
        parts = open_parts(conf, recorder or SILENT)
        conductor = make_conductor(parts, conf.host, worn_out=lambda: signals.put(Wanted.REPLACE))
        report_on_signal(conf, PROGRAM, conductor.monitor.sections())
        page = serve_conductor(conf, conductor.monitor, recorder) if recorder is not None else None
        start_conductor(parts, conductor)
    except (OSError, WrongConfiguration) as error:
        print(f"{PROGRAM}: cannot start: {error}", file=sys.stderr)
        return 1
    wanted = Wanted.STOP
    if _join(conductor, signals, systemd):
        LOG.info("stoker-conductor %s is in the ring and serves", conf.host)
        systemd.ready(f"{conf.host} is in the ring")
        wanted = stay(
            signals,
            systemd,
            reload=lambda: _reload(conf, conductor, arguments),
            late=conductor.liveness.late,
        )
    systemd.stopping(conductor.stops_within + STOP_MARGIN)
    finished = conductor.stop()
    if page is not None:
        page.stop()
    parts.close()
    LOG.info("stoker-conductor %s has stopped", conf.host)
    return end_process(WORN_OUT if wanted == Wanted.REPLACE else 0 if finished else 1)


def _join(conductor: Conductor, signals: Signals, systemd: Systemd) -> bool:
    """Wait, however long, until we are in the ring; False if we are to stop before."""
    told = time.monotonic()
    while not conductor.wait_ready(LOOK_EVERY):
        systemd.waiting("not in the ring yet", READY_WITHIN)
        if signals.next(0.001) == Wanted.STOP:
            return False
        if time.monotonic() - told > READY_WITHIN:
            told = time.monotonic()
            LOG.error("%s is not in the ring yet; it goes on trying", conductor.settings.host)
    return True


def _reload(conf: cfg.ConfigOpts, conductor: Conductor, arguments: list[str]) -> str:
    status = reload_options(conf, arguments, program=PROGRAM)
    conductor.retune(
        weight=conf.conductor.weight,
        drain=conf.conductor.drain,
        keep_deleted=conf.conductor.keep_deleted,
        keep_events=conf.stacks.max_events_per_stack,
    )
    return status
