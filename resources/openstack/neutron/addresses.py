"""Addresses and ranges as Neutron judges them (ipam/utils.py and db/ipam_backend_mixin.py there); pure."""

import ipaddress
from dataclasses import dataclass

from ....shapes import Json

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, order=True)
class Span:
    """Addresses from a first to a last one, as numbers; in the order of their first ones."""

    version: int
    first: int
    last: int

    @classmethod
    def between(cls, first: Address, last: Address) -> "Span":
        """Return the span of two addresses of the same version."""
        return cls(first.version, int(first), int(last))

    def is_within(self, other: "Span") -> bool:
        """Return whether the other span has all of its addresses."""
        return self.version == other.version and other.first <= self.first and self.last <= other.last

    def overlaps(self, other: "Span") -> bool:
        """Return whether the other span has one of its addresses."""
        return self.version == other.version and self.first <= other.last and other.first <= self.last


def address_of(text: Json) -> Address | None:
    """Return the address of a text; None: it is none, or not known."""
    try:
        return ipaddress.ip_address(text) if isinstance(text, str) else None
    except ValueError:
        return None


def network_of(text: Json) -> Network | None:
    """Return the range of a text, whose host bits do not matter; None: it is none, or not known."""
    try:
        return ipaddress.ip_network(text, strict=False) if isinstance(text, str) else None
    except ValueError:
        return None


def host_bounds(network: Network) -> tuple[Address, Address]:
    """Return the first and the last address that a pool may have."""
    is_small = network.version == 4 and network.prefixlen > 30
    first = network[0] if is_small or network.num_addresses == 1 else network[1]
    return first, network[-1] if is_small or network.version == 6 else network[-2]


def is_host(address: Address, network: Network) -> bool:
    """Return whether a port, or a gateway, may have an address of a subnet.

    It is neither the address of the network nor that of its broadcast.  Of ranges without these, and of IPv6,
    where the address of the network is a router's, each address counts.
    """
    if network.version == 6 or network.prefixlen > 30:
        return address in network
    return address in network and address not in (network[0], network[-1])
