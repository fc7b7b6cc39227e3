"""The checks that ``custom_constraint`` can name: those of Heat.

Checks of the value alone are made here.  What only the cloud knows, such as the existence of an image, is
checked where a resource is created.
"""

import datetime
import ipaddress
import json
import re
from collections.abc import Callable, Mapping

_MAX_NAME = 255
"""Characters of a domain name (RFC 1035, 2.3.4)."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_MAC = re.compile(
    r"(?:[0-9a-f]{1,2}(?P<mark>[:-])(?:[0-9a-f]{1,2}(?P=mark)){4}[0-9a-f]{1,2}"
    r"|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9a-f]{12})",
    re.IGNORECASE,
)


def problem(name: str, value: object) -> str | None:
    """Return what is wrong with the value, or None; None, too, where only the cloud can decide."""
    check = _LOCAL.get(name)
    if check is None:
        return None
    if not isinstance(value, str):
        return f"{value!r} is not a string"
    return check(value)


def _ip_address(value: str) -> str | None:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return f'"{value}" is not an IP address'
    return None


def _net_cidr(value: str) -> str | None:
    address, slash, prefix = value.partition("/")
    try:
        # As in Heat bits of the host part may be set, but a netmask is no prefix.
        longest = int(ipaddress.ip_address(address).max_prefixlen)
    except ValueError:
        longest = -1
    if slash and re.fullmatch("[0-9]{1,3}", prefix) and int(prefix) <= longest:
        return None
    return f'"{value}" is not a network in CIDR notation'


def _ip_or_cidr(value: str) -> str | None:
    return _net_cidr(value) if "/" in value else _ip_address(value)


def _mac_address(value: str) -> str | None:
    return None if _MAC.fullmatch(value) else f'"{value}" is not a MAC address'


def _dns_name(value: str) -> str | None:
    if not value:
        return None
    labels = value.removesuffix(".").split(".")
    if len(value) > _MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return f'"{value}" is not a domain name'
    if len(labels) > 1 and labels[-1].isdigit():
        return f'"{value}" is not a domain name: its last part is a number'
    return None


def _relative_dns_name(value: str) -> str | None:
    if value.endswith("."):
        return f'"{value}" ends with a dot; it must be relative to a domain'
    return _dns_name(value)


def _dns_domain(value: str) -> str | None:
    if value and not value.endswith("."):
        return f'"{value}" must end with a dot'
    return _dns_name(value)


def _iso_8601(value: str) -> str | None:
    short = {4: "-01-01", 7: "-01"}.get(len(value), "")
    try:
        datetime.datetime.fromisoformat(value + short)
    except ValueError:
        return f'"{value}" is not a time in ISO 8601'
    return None


def _json_string(value: str) -> str | None:
    try:
        if value:
            json.loads(value)
    except (ValueError, RecursionError):
        return f'"{value}" is not JSON'
    return None


_LOCAL: Mapping[str, Callable[[str], str | None]] = {
    "dns_domain": _dns_domain,
    "dns_name": _dns_name,
    "ip_addr": _ip_address,
    "ip_or_cidr": _ip_or_cidr,
    "iso_8601": _iso_8601,
    "json_string": _json_string,
    "mac_addr": _mac_address,
    "net_cidr": _net_cidr,
    "rel_dns_name": _relative_dns_name,
}

_ELSEWHERE: Mapping[str, str] = {
    "barbican": "container secret",
    "blazar": "reservation",
    "cinder": "backup qos_specs snapshot volume vtype",
    "designate": "zone",
    "glance": "image",
    "ironic": "node portgroup",
    "keystone": "domain group project region role service user",
    "magnum": "cluster_template",
    "manila": "share_network share_snapshot share_type",
    "mistral": "workflow",
    "neutron": "address_scope flow_classifier lbaas.listener lbaas.loadbalancer lbaas.pool lbaas.provider "
    "network port port_pair port_pair_group qos_policy router security_group segment subnet subnetpool "
    "taas.tap_flow taas.tap_service",
    "nova": "flavor host keypair network server",
    "octavia": "availabilityzone availabilityzoneprofile flavor flavorprofile l7policy listener loadbalancer "
    "pool",
    "trove": "flavor",
    "zaqar": "queue",
}

KNOWN = frozenset(
    {*_LOCAL, "cron_expression", "expiration", "test_constr", "timezone"}
    | {f"{service}.{kind}" for service, kinds in _ELSEWHERE.items() for kind in kinds.split()}
)
"""Every name that a template may give."""
