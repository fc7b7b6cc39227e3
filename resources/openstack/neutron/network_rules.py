"""Rules over the subnets, ports and addresses of one template, for what Neutron refuses in any case; pure."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....shapes import Json, JsonMap
from ...contract import BrokenRule, KnownResource, KnownStack, Made, Thing
from .addresses import Address, Network, Span, address_of, host_bounds, is_host, network_of
from .schema import is_overridden

SUBNET = "OS::Neutron::Subnet"
PORT = "OS::Neutron::Port"
SERVER = "OS::Nova::Server"
FLOATING_IP = "OS::Neutron::FloatingIP"
ROUTER = "OS::Neutron::Router"
_Path = tuple[str | int, ...]
_DELEGATED = network_of("::/64")
"""The range of subnets whose prefix is delegated later: many may have it."""


@dataclass(frozen=True)
class AddressClaim:
    """An address that a resource asks for.

    :ivar path: the path of the address in its properties.
    :ivar network: the network of the address; None: not given, or not known.
    :ivar subnet: the subnet of the address; None: not given, or not known.
    """

    resource: KnownResource
    path: _Path
    address: Address
    network: Thing | None
    subnet: Thing | None


def overlapping_subnets(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the subnets of which another one of the same network has addresses."""
    by_network: dict[Thing, list[tuple[Span, int, KnownResource]]] = {}
    for number, subnet in enumerate(stack.of_type(SUBNET)):
        network = subnet.thing("network")
        cidr = _cidr_of(subnet)
        if network is not None and cidr is not None and cidr != _DELEGATED:
            span = Span.between(cidr[0], cidr[-1])
            by_network.setdefault(network, []).append((span, number, subnet))
    for subnets in by_network.values():
        in_order = sorted(subnets, key=lambda entry: entry[:2])
        for (before, _, other), (span, _, subnet) in itertools.pairwise(in_order):
            if span.overlaps(before):
                text = (
                    f"{subnet.values['cidr']} overlaps with {other.values['cidr']} of {other.name}, which is "
                    "a subnet of the same network: use another range, or another network"
                )
                yield BrokenRule(subnet.name, text, ("cidr",))


def misplaced_addresses(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the addresses that are not in the subnet beside them."""
    for claim in address_claims(stack):
        subnet = _subnet(stack, claim.subnet)
        cidr = None if subnet is None else _cidr_of(subnet)
        if subnet is None or cidr is None or is_host(claim.address, cidr):
            continue
        first, last = host_bounds(cidr)
        text = (
            f"{claim.address} is not an address of the subnet {subnet.name} ({cidr}): use {first} to {last}"
        )
        yield BrokenRule(claim.resource.name, text, claim.path)


def subnets_of_others(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the subnets of ports' addresses that are of another network than the port."""
    for port in stack.of_type(PORT):
        network = port.thing("network")
        if not isinstance(network, Made) or is_overridden(port.values, "network_id", "fixed_ips"):
            continue
        for index, _ in enumerate(port.values.get("fixed_ips") or ()):
            path = ("fixed_ips", index, "subnet")
            subnet = _subnet(stack, port.thing(*path))
            if subnet is None or is_overridden(subnet.values, "network_id"):
                continue
            other = subnet.thing("network")
            if isinstance(other, Made) and other != network:
                text = f"{subnet.name} is a subnet of {other.resource}, but the port is in {network.resource}"
                yield BrokenRule(port.name, text, path)


def repeated_addresses(stack: KnownStack) -> Iterator[BrokenRule]:
    """Yield the addresses, and the MAC addresses, that another resource has in the same network."""
    addresses: dict[tuple[object, Address], AddressClaim] = {}
    for claim in address_claims(stack):
        if (shared := _network(stack, claim)) is None:
            continue
        other = addresses.setdefault((shared, claim.address), claim)
        if other is not claim:
            where = _at(other.resource.name, *other.path)
            text = f"{claim.address} is already the address at {where}, in the same network: use another one"
            yield BrokenRule(claim.resource.name, text, claim.path)
    macs: dict[tuple[Thing, str], str] = {}
    for name, path, network, mac in _macs(stack):
        where = _at(name, *path)
        owner = macs.setdefault((network, mac), where)
        if owner != where:
            text = f"the MAC address is already that at {owner}, in the same network: use another one"
            yield BrokenRule(name, text, path)


NETWORK_RULES = (overlapping_subnets, misplaced_addresses, subnets_of_others, repeated_addresses)


def _at(resource: str | int, *path: str | int) -> str:
    return ".".join(map(str, ("resources", resource, "properties", *path)))


def _cidr_of(subnet: KnownResource) -> Network | None:
    """Return the range of a subnet; None: it is not known."""
    if is_overridden(subnet.values, "cidr", "network_id"):
        return None
    return network_of(subnet.values.get("cidr"))


def _subnet(stack: KnownStack, thing: Thing | None) -> KnownResource | None:
    resource = stack.made(thing)
    return resource if resource is not None and resource.type == SUBNET else None


def _network(stack: KnownStack, claim: AddressClaim) -> object:
    """Return what two addresses of the same network have in common; None: that is not known."""
    if claim.network is not None:
        return claim.network
    subnet = _subnet(stack, claim.subnet)
    if subnet is not None and not is_overridden(subnet.values, "network_id"):
        return subnet.thing("network") or ("subnet", claim.subnet)
    return claim.subnet and ("subnet", claim.subnet)


def address_claims(stack: KnownStack) -> Iterator[AddressClaim]:
    """Yield the addresses that ports, servers, routers and floating IPs of a template ask for."""
    for port in stack.of_type(PORT):
        if not is_overridden(port.values, "network_id", "fixed_ips"):
            items = port.values.get("fixed_ips")
            yield from _claims_of(port, ("fixed_ips",), items, port.thing("network"))
    for server in stack.of_type(SERVER):
        for index, entry in _new_ports(server, "fixed_ips"):
            if (address := address_of(entry.get("fixed_ip"))) is not None:
                network = server.thing("networks", index, "network")
                subnet = server.thing("networks", index, "subnet")
                yield AddressClaim(server, ("networks", index, "fixed_ip"), address, network, subnet)
    for router in stack.of_type(ROUTER):
        gateway = router.values.get("external_gateway_info") or {}
        if not is_overridden(router.values, "external_gateway_info"):
            path = ("external_gateway_info", "external_fixed_ips")
            network = router.thing("external_gateway_info", "network")
            yield from _claims_of(router, path, gateway.get("external_fixed_ips"), network)
    for floating in stack.of_type(FLOATING_IP):
        address = address_of(floating.values.get("floating_ip_address"))
        fields = ("floating_network_id", "subnet_id", "floating_ip_address")
        if address is not None and not is_overridden(floating.values, *fields):
            network = floating.thing("floating_network")
            subnet = floating.thing("floating_subnet")
            yield AddressClaim(floating, ("floating_ip_address",), address, network, subnet)


def _claims_of(
    resource: KnownResource, path: tuple[str, ...], items: Json, network: Thing | None
) -> Iterator[AddressClaim]:
    for index, item in enumerate(items or ()):
        if (address := address_of(item.get("ip_address"))) is not None:
            subnet = resource.thing(*path, index, "subnet")
            yield AddressClaim(resource, (*path, index, "ip_address"), address, network, subnet)


def _new_ports(server: KnownResource, *fields: str) -> Iterator[tuple[int, JsonMap]]:
    """Yield the networks of a server in which it gets a new port with all that the properties say of it."""
    for index, entry in enumerate(server.values.get("networks") or ()):
        is_new = "port" in entry and entry["port"] is None and "port_extra_properties" in entry
        if is_new and not is_overridden(entry["port_extra_properties"] or {"value_specs": None}, *fields):
            yield index, entry


def _macs(stack: KnownStack) -> Iterable[tuple[str, _Path, Thing, str]]:
    """Yield the MAC addresses, each with its resource, its path, and its network."""
    for port in stack.of_type(PORT):
        network = port.thing("network")
        mac = port.values.get("mac_address")
        if mac and network is not None and not is_overridden(port.values, "network_id", "mac_address"):
            yield port.name, ("mac_address",), network, _digits(mac)
    for server in stack.of_type(SERVER):
        for index, entry in _new_ports(server, "mac_address", "network_id"):
            network = server.thing("networks", index, "network")
            mac = (entry["port_extra_properties"] or {}).get("mac_address")
            if mac and network is not None:
                path = ("networks", index, "port_extra_properties", "mac_address")
                yield server.name, path, network, _digits(mac)


def _digits(mac: str) -> str:
    """Return the twelve digits of a MAC address, however it is written."""
    parts = mac.lower().replace("-", ":").split(":")
    return "".join(part.zfill(2) if len(parts) == 6 else part for part in parts).replace(".", "")
