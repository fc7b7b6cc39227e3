"""All servers and accounts that a configuration names, each with its check."""

import functools
import socket
from collections.abc import Iterator

import requests
from oslo_config import cfg

from ...rpc.bus import LOCAL
from ...rpc.errors import BROKER_ERRORS
from ..config.errors import WrongConfiguration
from .accounts import accounts, check_account
from .keystone import SECTION as API
from .keystone import register_options
from .messaging import make_bus
from .probes import SERVERS, WITHIN, Check, answers

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
        requests.head(conf.api.horizon_url, timeout=WITHIN / 2)
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
        register_options(conf)
        if conf[API].memcached_servers:
            servers["memcached"] = (MEMCACHED, check_memcached)
    if conf.oslo_messaging_notifications.driver and conf.oslo_messaging_notifications.transport_url:
        servers["message bus of notifications"] = (NOTIFICATIONS, check_notifications)
    if conf.api.console and conf.api.horizon_url:
        servers["Horizon"] = ("[api] horizon_url", check_horizon)
    return servers


def unreachable(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str | None]]:
    """Yield each server with its fault, None if it answers; one after the other."""
    for name, (option, check) in {**SERVERS, **optional_servers(conf)}.items():
        yield name, answers(conf, option, check)
