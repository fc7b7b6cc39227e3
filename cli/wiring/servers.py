"""The servers and accounts that a configuration names, each with a check of whether it answers."""

import contextlib
import functools
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

import requests
import tooz
from oslo_config import cfg

from ...db.errors import DatabaseError
from ...ring.group import make_coordinator
from ...rpc.bus import LOCAL
from ...rpc.errors import BROKER_ERRORS
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .accounts import accounts, check_account
from .client_checks import check_clients, differing
from .coordination import check_backend
from .database import open_database
from .messaging import make_bus
from .service_account import SECTION as API
from .service_account import register_options

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
        coordinator = make_coordinator(Settings(conf).coordination.backend_url, b"stoker-manage")
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


NOTIFICATIONS = "[oslo_messaging_notifications] transport_url"
MEMCACHED = f"[{API}] memcached_servers"


def check_notifications(conf: cfg.ConfigOpts) -> None:
    """Check the message bus of notifications.

    :raises WrongConfiguration: it does not answer.
    """
    url = conf.oslo_messaging_notifications.transport_url
    bus = make_bus(conf, url=url)
    try:
        bus.check()
    except (*BROKER_ERRORS, OSError) as error:
        raise WrongConfiguration(f"{NOTIFICATIONS}: the message bus does not answer: {error}") from error
    bus.close()


def check_memcached(conf: cfg.ConfigOpts) -> None:
    """Check the servers that keep validated tokens.

    :raises WrongConfiguration: one of them does not answer.
    """
    for server in conf[API].memcached_servers:
        host, _, port = server.removeprefix("inet6:").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), WITHIN / 2).close()
        except (OSError, ValueError) as error:
            raise WrongConfiguration(f"{MEMCACHED}: {server} does not answer: {error}") from error


def check_horizon(conf: cfg.ConfigOpts) -> None:
    """Check that somebody answers at the address to which the console's links lead.

    :raises WrongConfiguration: nobody does.
    """
    try:
        requests.head(str(Settings(conf).api.horizon_url), timeout=WITHIN / 2)
    except requests.RequestException as error:
        raise WrongConfiguration(f"[api] horizon_url: it does not answer: {error}") from error


def optional_servers(conf: cfg.ConfigOpts) -> dict[str, tuple[str, Check]]:
    """Return the further servers that the configuration names, each with its option and its check."""
    servers: dict[str, tuple[str, Check]] = {}
    # With everything in one process no token is required.
    sections = {} if conf.transport_url.startswith(LOCAL) else accounts(conf)
    for section in sections:
        check = functools.partial(check_account, section=section)
        servers[f"account [{section}] at Keystone"] = (f"[{section}]", check)
    if sections:
        # The check of the options says what is wrong with these.
        with contextlib.suppress(WrongConfiguration):
            register_options(conf)
            if conf[API].memcached_servers:
                servers["memcached"] = (MEMCACHED, check_memcached)
        with contextlib.suppress(WrongConfiguration):
            for section in differing(conf):
                check = functools.partial(check_clients, section=section)
                servers[f"calls by [{section}]"] = (f"[{section}]", check)
    if conf.oslo_messaging_notifications.driver and conf.oslo_messaging_notifications.transport_url:
        servers["message bus of notifications"] = (NOTIFICATIONS, check_notifications)
    api = Settings(conf).api
    if api.console and api.horizon_url:
        servers["Horizon"] = ("[api] horizon_url", check_horizon)
    return servers


def unreachable(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str | None]]:
    """Yield each server with its fault, None if it answers; one after the other."""
    for name, (option, check) in {**SERVERS, **optional_servers(conf)}.items():
        yield name, answers(conf, option, check)
