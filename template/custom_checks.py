"""The checks that ``custom_constraint`` can name: those of Heat.

Checks of the value alone are made here.  Facts that only the cloud knows, such as the existence of an image,
are asked for by the request (engine/cloud.py), or found out where a resource is created.
"""

import datetime
import ipaddress
import json
import re
import zoneinfo
from collections.abc import Callable, Mapping

_MAX_NAME = 255
"""Characters of a domain name (RFC 1035, 2.3.4)."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_MAC = re.compile(
    r"(?:[0-9a-f]{1,2}(?P<mark>[:-])(?:[0-9a-f]{1,2}(?P=mark)){4}[0-9a-f]{1,2}"
    r"|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9a-f]{12})",
    re.IGNORECASE,
)

# Columns of cron expressions, as crontab(5) describes them.  Aodh and Heat take more: a sixth column for
# seconds and a seventh for years, ``?`` for any value, ``L`` for the last day, and ``#`` for a weekday of one
# week of the month.
_CRON_ALIASES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_CRON_COLUMNS: tuple[tuple[str, int, int, Mapping[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
    ("second", 0, 59, {}),
    ("year", 1970, 2099, {}),
)
"""Name of each column, its smallest and largest value, and words for values."""
_CRON_PART = re.compile(
    r"(?:[*?]|(?P<first>[0-9]{1,4}|[a-z]{3})(?:-(?P<last>[0-9]{1,4}|[a-z]{3}))?)(?:/(?P<step>[0-9]{1,4}))?"
)
_NTH_DAY = re.compile(r"(?P<day>[0-9]|[a-z]{3})#[1-5]|l(?P<last>[0-9]|[a-z]{3})")


def problem(name: str, value: object) -> str | None:
    """Return the problem of the value, or None; None, too, where only the cloud can decide."""
    check = _LOCAL.get(name)
    if check is None:
        return None
    if not isinstance(value, str):
        return f"{json.dumps(value, default=str)} is not a string"
    return check(value)


def _timezone(value: str) -> str | None:
    try:
        if value:
            zoneinfo.ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        return f'"{value}" is not a time zone of the IANA database, such as Europe/Paris'
    return None


def _cron_expression(value: str) -> str | None:
    if not value or value.strip().lower() in _CRON_ALIASES:
        return None
    words = value.lower().split()
    if not 5 <= len(words) <= len(_CRON_COLUMNS):
        return f'"{value}" is not a cron expression: it must have 5 columns, not {len(words)}'
    for word, (name, low, high, names) in zip(words, _CRON_COLUMNS, strict=False):
        for field in word.split(","):
            if not _is_cron_part(field, name, low, high, names):
                return f'"{value}" is not a cron expression: "{field}" is not a valid {name}'
    return None


def _is_cron_part(field: str, column: str, low: int, high: int, names: Mapping[str, int]) -> bool:
    if column == "day of the month" and field == "l":
        return True
    if column == "day of the week" and (nth := _NTH_DAY.fullmatch(field)):
        return _cron_number(nth["day"] or nth["last"], names, low, high) is not None
    match = _CRON_PART.fullmatch(field)
    if match is None or (match["step"] is not None and int(match["step"]) == 0):
        return False
    if match["first"] is None:
        return True
    first = _cron_number(match["first"], names, low, high)
    last = first if match["last"] is None else _cron_number(match["last"], names, low, high)
    return first is not None and last is not None


def _cron_number(word: str, names: Mapping[str, int], low: int, high: int) -> int | None:
    number = int(word) if word.isdigit() else names.get(word)
    return number if number is not None and low <= number <= high else None


def _expiration(value: str) -> str | None:
    # The request checks that the time is not over: a stored goal must not become wrong as time passes.
    return _iso_8601(value.strip()) if value else None


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
    "cron_expression": _cron_expression,
    "dns_domain": _dns_domain,
    "dns_name": _dns_name,
    "expiration": _expiration,
    "ip_addr": _ip_address,
    "ip_or_cidr": _ip_or_cidr,
    "iso_8601": _iso_8601,
    "json_string": _json_string,
    "mac_addr": _mac_address,
    "net_cidr": _net_cidr,
    "rel_dns_name": _relative_dns_name,
    "timezone": _timezone,
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
    "nova": "flavor host keypair server",
    "octavia": "availabilityzone availabilityzoneprofile flavor flavorprofile l7policy listener loadbalancer "
    "pool",
    "trove": "flavor",
    "zaqar": "queue",
}

OF_CLOUD = frozenset(
    {"expiration"} | {f"{service}.{kind}" for service, kinds in _ELSEWHERE.items() for kind in kinds.split()}
)
"""The names of checks that need a request: of the services, or of the present time."""

# As in Heat any value meets the last two: Nova has no networks any more, and the other is for Heat's tests.
KNOWN = frozenset({*_LOCAL, *OF_CLOUD, "nova.network", "test_constr"})
"""Every name that a template may give."""
