"""The guard against foreign pages, and the proxies that are believed, from the configuration."""

import ipaddress
import socket
from collections.abc import Sequence

from oslo_config import cfg

from ...api.origins import OriginGuard
from ...api.strangers import Network
from ..config.errors import WrongConfiguration


def make_origin_guard(conf: cfg.ConfigOpts) -> OriginGuard | None:
    """Make the guard; None: Keystone's tokens protect the API."""
    if conf.api.auth_strategy != "none":
        return None
    addresses = [conf.api.public_url, conf.guests.metadata_url, conf.guests.waitcondition_url]
    return OriginGuard(
        [conf.api.bind_host, socket.gethostname(), *conf.api.allowed_hosts],
        [address for address in addresses if address],
    )


def trusted_proxies(conf: cfg.ConfigOpts) -> Sequence[Network]:
    """Return the networks of the proxies whose X-Forwarded-For is believed.

    :raises WrongConfiguration: an entry is no address and no network.
    """
    try:
        return [ipaddress.ip_network(entry) for entry in conf.api.trusted_proxies]
    except ValueError as error:
        raise WrongConfiguration(f"[api] trusted_proxies: {error}") from error
