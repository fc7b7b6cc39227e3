"""Probes of the configured servers: whether each answers."""

import logging
import threading
from collections.abc import Callable, Mapping

import tooz
from oslo_config import cfg

from ...db.errors import DatabaseError
from ...ring.group import make_coordinator
from ...rpc.errors import BROKER_ERRORS
from ..config.errors import WrongConfiguration
from .coordination import check_backend
from .database import open_database
from .messaging import make_bus

LOG = logging.getLogger(__name__)
WITHIN = 10.0
"""Seconds within which a server must answer."""

Check = Callable[[cfg.ConfigOpts], None]


def check_database(conf: cfg.ConfigOpts) -> None:
    """Check the database.

    :raises WrongConfiguration: the database does not answer, or its version is not this release's.
    """
    try:
        open_database(conf)[0].close()
    except DatabaseError as error:
        raise WrongConfiguration(f"[database] connection: {error}") from error


def check_bus(conf: cfg.ConfigOpts) -> None:
    """Check the message bus.

    :raises WrongConfiguration: the bus does not answer.
    """
    bus = make_bus(conf)
    try:
        bus.check()
    except (*BROKER_ERRORS, OSError) as error:
        raise WrongConfiguration(f"transport_url: the message bus does not answer: {error}") from error
    bus.close()


def check_coordination(conf: cfg.ConfigOpts) -> None:
    """Check the coordination backend.

    :raises WrongConfiguration: the backend does not answer.
    """
    check_backend(conf)
    try:
        coordinator = make_coordinator(conf.coordination.backend_url, b"stoker-manage")
        coordinator.start(start_heart=False)
        coordinator.get_groups().get()
        coordinator.stop()
    except (tooz.ToozError, OSError) as error:
        fault = f"[coordination] backend_url: the coordination backend does not answer: {error}"
        raise WrongConfiguration(fault) from error


SERVERS: Mapping[str, tuple[str, Check]] = {
    "database": ("[database] connection", check_database),
    "message bus": ("transport_url", check_bus),
    "coordination backend": ("[coordination] backend_url", check_coordination),
}
"""The servers of each installation, each with its option and its check."""


def silence_libraries() -> None:
    """Silence the libraries' logs about an unavailable server: Stoker reports it once."""
    for name in ("oslo.messaging", "oslo_messaging", "kombu", "amqp", "tooz", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def answers(conf: cfg.ConfigOpts, option: str, check: Check, within: float = WITHIN) -> str | None:
    """Return the fault of a server; None: it answers.  A library may retry without end, so it gets a thread.

    :param within: the seconds within which it must answer.
    """
    silence_libraries()
    faults: list[str | None] = []

    def ask() -> None:
        try:
            check(conf)
            faults.append(None)
        except WrongConfiguration as error:
            faults.append(str(error))
        except Exception as error:  # top of the thread: each library has errors of its own for this
            LOG.debug("%s: it does not answer", option, exc_info=True)
            faults.append(f"{option}: it does not answer: {error}")

    thread = threading.Thread(target=ask, name="check", daemon=True)
    thread.start()
    thread.join(within)
    return faults[0] if faults else f"{option}: no answer within {within:g} s"
