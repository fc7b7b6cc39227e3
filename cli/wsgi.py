"""The API for a WSGI server: ``stoker.cli.wsgi:application``.

The configuration is that of ``stoker-api``: /etc/stoker/stoker.conf, or the file in the environment
variable STOKER_CONFIG_FILE.  Import the module in the process that answers requests (uWSGI: ``lazy-apps``),
with threads (``enable-threads``): it starts one that sends hints.
"""

import atexit
import typing

from .daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

from oslo_log import log  # isort: skip

from .config import options
from .daemon.version import VERSION
from .wiring.api import make_api
from .wiring.messaging import GATHER
from .wiring.metrics import recorder_of_api, text_of
from .wiring.parts import open_parts

PROGRAM = "stoker-api"


def make_application() -> typing.Any:
    """Make the application, connected to its servers.

    :raises WrongConfiguration: an option is missing or wrong.
    """
    conf = options.load([], program=PROGRAM)
    log.setup(conf, "stoker", VERSION)
    parts = open_parts(conf, recorder_of_api(conf), gather=GATHER)
    atexit.register(parts.close)
    return make_api(parts, version=VERSION, metrics_text=text_of(parts.recorder))


application = make_application()
