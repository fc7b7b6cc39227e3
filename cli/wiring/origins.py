"""The guard against foreign pages, from the configuration."""

import socket

from oslo_config import cfg

from ...api.origins import OriginGuard


def make_origin_guard(conf: cfg.ConfigOpts) -> OriginGuard | None:
    """Make the guard; None: Keystone's tokens protect the API."""
    if conf.api.auth_strategy != "none":
        return None
    addresses = [conf.api.public_url, conf.guests.metadata_url, conf.guests.waitcondition_url]
    return OriginGuard(
        [conf.api.bind_host, socket.gethostname(), *conf.api.allowed_hosts],
        [address for address in addresses if address],
    )
