"""OS::Neutron::Subnet: a range of addresses of a network."""

import ipaddress
from collections.abc import Collection

from ....shapes import Json, JsonMap
from ....template.constraints import AllowedValues, Custom, Range
from ...contract import Attribute, Property, PropertyError, ResourceView, StepContext
from ..bodies import NamedRemote
from ..declared import REMOTE
from .base import NeutronType
from .schema import HIDDEN, SHOWN, TAGS, TENANT, VALUE_SPECS

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
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
    port_query = ("fixed_ips", "subnet_id={}")
    references = {
        "network": NamedRemote("neutron.network"),
        "subnetpool": NamedRemote("neutron.subnetpool"),
        "segment": NamedRemote("neutron.segment"),
    }
    properties_schema = {
        "network": Property(
            "string",
            "Name or id of the network.",
            required=True,
            constraints=(Custom(check_name="neutron.network"),),
        ),
        "network_id": Property("string", "Old name of network.", support_status=HIDDEN, alias_of="network"),
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
        "name": Property(
            "string",
            "Name; if omitted, generated from the names of the stack and the resource.",
            update_allowed=True,
        ),
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
        """Return the fields of a new subnet."""
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
