"""OS::Neutron::Subnet: a range of addresses of a network."""

import ipaddress
import itertools
import typing
from collections.abc import Collection, Sequence

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import (
    Attribute,
    Property,
    PropertyError,
    ResourceView,
    StackRule,
    StepContext,
    rule_of_each,
)
from ..bodies import NamedRemote
from ..declared import REMOTE
from .addresses import Address, Network, Span, address_of, host_bounds, is_host, network_of
from .base import NeutronType
from .network_rules import NETWORK_RULES
from .schema import NAME, OF_NETWORK, SHOWN, TAGS, TENANT, VALUE_SPECS, is_overridden
from .users import PORTS, Usage

IPV6_MODES = AllowedValues(values=("dhcpv6-stateful", "dhcpv6-stateless", "slaac"))
POOL = {
    "start": Property(
        "string", "First address of the pool.", required=True, constraints=(Custom(check_name="ip_addr"),)
    ),
    "end": Property(
        "string", "Last address of the pool.", required=True, constraints=(Custom(check_name="ip_addr"),)
    ),
}
ROUTE = {
    "destination": Property(
        "string", "Destination network, as CIDR.", required=True, constraints=(Custom(check_name="net_cidr"),)
    ),
    "nexthop": Property(
        "string", "IP address of the next hop.", required=True, constraints=(Custom(check_name="ip_addr"),)
    ),
}


class Subnet(NeutronType):
    """A subnet: an address range of a network, with its DHCP options."""

    type_name = "OS::Neutron::Subnet"
    description = "A subnet: an address range of a network, with its DHCP options."
    path = "/subnets"
    item = "subnet"
    quota = {"subnet": 1}
    used_by = Usage(PORTS, "fixed_ips", "subnet_id")
    references = {
        "network": NamedRemote("neutron.network"),
        "subnetpool": NamedRemote("neutron.subnetpool"),
        "segment": NamedRemote("neutron.segment"),
    }
    properties_schema = {
        **OF_NETWORK,
        "subnetpool": Property(
            "string",
            "Name or id of the subnet pool that the CIDR is allocated from.",
            constraints=(Custom(check_name="neutron.subnetpool"),),
        ),
        "segment": Property(
            "string",
            "Name or id of the network segment.",
            update_allowed=True,
            constraints=(Custom(check_name="neutron.segment"),),
        ),
        "prefixlen": Property(
            "integer", "Prefix length to allocate from the subnet pool.", constraints=(Range(minimum=0),)
        ),
        "cidr": Property("string", "Address range, as CIDR.", constraints=(Custom(check_name="net_cidr"),)),
        "value_specs": VALUE_SPECS,
        "name": NAME,
        "ip_version": Property(
            "integer", "IP version.", default=4, constraints=(AllowedValues(values=(4, 6)),)
        ),
        "dns_nameservers": Property(
            "list", "Addresses of DNS name servers.", default=[], update_allowed=True
        ),
        "gateway_ip": Property(
            "string",
            "Gateway address; if omitted, the first of the range; empty or ~: no gateway.",
            update_allowed=True,
            empty="sent",
        ),
        "enable_dhcp": Property("boolean", "DHCP service on the subnet.", default=True, update_allowed=True),
        "allocation_pools": Property(
            "list",
            "Allocation pools; if omitted, the whole range except the gateway.",
            update_allowed=True,
            schema=Property("map", "Allocation pool.", schema=POOL),
        ),
        "tenant_id": TENANT,
        "host_routes": Property(
            "list",
            "Host routes, announced by DHCP.",
            update_allowed=True,
            schema=Property("map", "Host route.", schema=ROUTE),
        ),
        "ipv6_ra_mode": Property("string", "IPv6 router advertisement mode.", constraints=(IPV6_MODES,)),
        "ipv6_address_mode": Property("string", "IPv6 address assignment mode.", constraints=(IPV6_MODES,)),
        "tags": TAGS,
    }
    stack_rules: typing.ClassVar[Sequence[StackRule]] = (
        rule_of_each("OS::Neutron::Subnet", lambda values: range_errors(values)),
        *NETWORK_RULES,
    )
    attributes_schema = {
        **SHOWN,
        "allocation_pools": Attribute("Allocation pools.", "list"),
        "cidr": Attribute("Address range, as CIDR.", "string"),
        "dns_nameservers": Attribute("Addresses of DNS name servers.", "list"),
        "enable_dhcp": Attribute("DHCP service on the subnet.", "string"),
        "gateway_ip": Attribute("Gateway address.", "string"),
        "host_routes": Attribute("Host routes.", "list"),
        "ip_version": Attribute("IP version.", "string"),
        "network_id": Attribute("Id of the network.", "string"),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that the range is named once, and that IPv6's modes fit together."""
        if not any(properties.get(name, "unknown") for name in ("cidr", "subnetpool")):
            raise PropertyError("one of cidr and subnetpool is needed")
        modes = [properties.get(name) for name in ("ipv6_ra_mode", "ipv6_address_mode")]
        if all(modes) and modes[0] != modes[1]:
            raise PropertyError("ipv6_ra_mode and ipv6_address_mode must be equal where both are given")
        if any(modes) and properties.get("ip_version") == 4:
            raise PropertyError("ipv6_ra_mode and ipv6_address_mode are for ip_version 6 only")

    def create_body(self, target: ResourceView, context: StepContext) -> dict[str, Json]:
        return _with_gateway(super().create_body(target, context))

    def update_body(
        self, target: ResourceView, changed: Collection[str], context: StepContext
    ) -> dict[str, Json]:
        """Return the fields that change; for what is not given any more the service's own defaults."""
        body = _with_gateway(super().update_body(target, changed, context))
        remote = target.data.get(REMOTE) or {}
        cidr = remote.get("cidr") or target.properties["cidr"]
        if cidr and "gateway_ip" in changed and target.properties["gateway_ip"] is None:
            body["gateway_ip"] = str(default_gateway(cidr))
        if cidr and "allocation_pools" in changed and target.properties["allocation_pools"] is None:
            gateway = body["gateway_ip"] if "gateway_ip" in body else remote.get("gateway_ip")
            body["allocation_pools"] = default_pools(cidr, gateway)
        return body


_FIELDS = ("cidr", "subnetpool_id", "ip_version", "gateway_ip", "allocation_pools")
"""Fields that decide about the range of a subnet."""
_MOST_DHCP = {4: 30, 6: 126}
"""Longest prefix of a subnet with DHCP, by the IP version."""


def range_errors(properties: JsonMap) -> list[PropertyError]:
    """Return the errors of the range, the gateway and the pools that the service would refuse.

    A gateway outside of the range is none: the service takes it.

    :param properties: the known properties; those that are unknown are absent.
    """
    if is_overridden(properties, *_FIELDS):
        return []
    cidr = network_of(properties.get("cidr"))
    version = properties.get("ip_version")
    errors = [*_gateway_errors(properties, cidr), *_pool_errors(properties, cidr)]
    if cidr is not None and version is not None and cidr.version != version:
        text = f"{cidr} is a range of IPv{cidr.version}, but ip_version is {version}"
        return [PropertyError(f"{text}: write ip_version: {cidr.version}", ("cidr",))]
    if cidr is not None and properties.get("enable_dhcp") and cidr.prefixlen > _MOST_DHCP[cidr.version]:
        text = (
            f"{cidr} is too small for DHCP: its prefix may have {_MOST_DHCP[cidr.version]} bits at the most"
        )
        errors.append(PropertyError(f"{text}; or write enable_dhcp: false", ("cidr",)))
    return errors


def _gateway_errors(properties: JsonMap, cidr: Network | None) -> list[PropertyError]:
    gateway = address_of(properties.get("gateway_ip"))
    version = properties.get("ip_version")
    text = ""
    if gateway is not None and version is not None and gateway.version != version:
        text = f"the gateway {gateway} is not an address of IPv{version}, which is the subnet's ip_version"
    elif gateway is not None and cidr is not None and gateway in cidr and not is_host(gateway, cidr):
        first, last = host_bounds(cidr)
        text = f"the gateway {gateway} is the network or broadcast address of {cidr}: use {first} to {last}"
    return [PropertyError(text, ("gateway_ip",))] if text else []


def _pool_errors(properties: JsonMap, cidr: Network | None) -> list[PropertyError]:
    pools = properties.get("allocation_pools") or ()
    if pools and properties.get("subnetpool") and "cidr" in properties and properties["cidr"] is None:
        return [PropertyError("allocation_pools need a cidr in the subnet pool", ("allocation_pools",))]
    gateway = _first_gateway(properties, cidr)
    errors = []
    spans: list[tuple[Span, int]] = []
    for index, pool in enumerate(pools):
        start = address_of(pool.get("start"))
        end = address_of(pool.get("end"))
        if start is None or end is None:
            continue
        if problem := _pool_problem(start, end, cidr, gateway):
            errors.append(PropertyError(f"the pool {start} to {end} {problem}", ("allocation_pools", index)))
        else:
            spans.append((Span.between(start, end), index))
    for (before, other), (span, index) in itertools.pairwise(sorted(spans)):
        if span.overlaps(before):
            text = f"the pool has addresses of another one (allocation_pools.{other})"
            errors.append(PropertyError(text, ("allocation_pools", index)))
    return errors


def _first_gateway(properties: JsonMap, cidr: Network | None) -> Address | None:
    """Return the gateway of a new subnet; None: it has none, or that is not known.

    Releases of the service differ in the gateway of IPv6.
    """
    if "gateway_ip" not in properties:
        return None
    if properties["gateway_ip"] is None and cidr is not None and cidr.version == 4 and cidr.prefixlen < 32:
        return cidr[1]
    return address_of(properties["gateway_ip"])


def _pool_problem(start: Address, end: Address, cidr: Network | None, gateway: Address | None) -> str:
    """Return what is wrong with a pool, as the end of a sentence; "": nothing."""
    span = Span.between(start, end)
    if start.version != end.version or span.first > span.last:
        return "must begin with its lowest address, and end with its highest"
    if cidr is not None and not span.is_within(Span.between(*host_bounds(cidr))):
        first, last = host_bounds(cidr)
        return f"is not within {cidr}: use {first} to {last}"
    if gateway is not None and Span.between(gateway, gateway).is_within(span):
        return f"has the gateway {gateway}: leave it out, or choose another gateway_ip"
    return ""


def default_gateway(cidr: str) -> Address:
    """Return the gateway that Neutron gives to a new subnet: the first address after that of the network."""
    return ipaddress.ip_network(cidr, strict=False)[1]


def default_pools(cidr: str, gateway: str | None) -> list[dict[str, str]]:
    """Return the pools that Neutron gives to a new subnet: all addresses but the gateway.

    The address of the network is in none of them, nor is the broadcast address of IPv4.

    :param gateway: the subnet's gateway; None: it has none.
    """
    network = ipaddress.ip_network(cidr, strict=False)
    is_small = network.num_addresses <= 2
    first = int(network[0]) + (0 if is_small else 1)
    last = int(network[-1]) - (1 if network.version == 4 and not is_small else 0)
    taken = None if gateway is None else int(ipaddress.ip_address(gateway))
    if taken is None or not first <= taken <= last:
        ranges = [(first, last)]
    else:
        ranges = [(first, taken - 1), (taken + 1, last)]
    address = type(network[0])
    return [{"start": str(address(start)), "end": str(address(end))} for start, end in ranges if start <= end]


def _with_gateway(body: dict[str, Json]) -> dict[str, Json]:
    """Return the fields with null for an empty gateway: the subnet has none."""
    return {**body, "gateway_ip": None} if body.get("gateway_ip") == "" else body
