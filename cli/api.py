"""``stoker-api``: the REST service."""

import logging
import sys

from . import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from . import options
from .options import WrongConfiguration
from .serving import HttpServer
from .version import VERSION
from .waiting import StopSignal, end_process
from .wiring import make_api, open_parts

LOG = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code: 0 after SIGTERM or SIGINT, 1 if it could not start."""
    stop = StopSignal()
    try:
        conf = options.load(sys.argv[1:] if arguments is None else arguments, program="stoker-api")
        log.setup(conf, "stoker", VERSION)
        parts = open_parts(conf)
        app = make_api(parts, version=VERSION)
        http = HttpServer(app, host=conf.api.bind_host, port=conf.api.bind_port, threads=conf.api.threads)
        port = http.start()
    except (OSError, WrongConfiguration) as error:
        print(f"stoker-api: cannot start: {error}", file=sys.stderr)
        return 1
    LOG.info("stoker-api listens on %s:%s", conf.api.bind_host, port)
    stop.wait()
    http.stop()
    parts.close()
    return end_process(0)
