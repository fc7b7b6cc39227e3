"""``stoker-conductor``: the daemon."""

import logging
import sys

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from . import options
from .options import WrongConfiguration
from .version import VERSION
from .waiting import StopSignal, end_process
from .wiring import make_conductor, open_parts, start_conductor

LOG = logging.getLogger(__name__)
READY_WITHIN = 60.0


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after SIGTERM or SIGINT when all steps in progress had ended, 1 if it
    could not start or some had not."""
    stop = StopSignal()
    try:
        conf = options.load(sys.argv[1:] if arguments is None else arguments, program="stoker-conductor")
        log.setup(conf, "stoker", VERSION)
        parts = open_parts(conf)
        conductor = make_conductor(parts, conf.host)
        start_conductor(parts, conductor)
    except (OSError, WrongConfiguration) as error:
        print(f"stoker-conductor: cannot start: {error}", file=sys.stderr)
        return 1
    if conductor.wait_ready(READY_WITHIN):
        LOG.warning("stoker-conductor %s is in the ring and serves", conf.host)
    else:
        LOG.error("stoker-conductor %s is not in the ring yet; it goes on trying", conf.host)
    stop.wait()
    finished = conductor.stop()
    parts.close()
    LOG.warning("stoker-conductor %s has stopped", conf.host)
    return end_process(0 if finished else 1)
