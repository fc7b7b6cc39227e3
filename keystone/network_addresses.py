"""Addresses of hosts, and those inside of addresses, to which users may not send Stoker."""

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # OpenStack, Amazon, Azure, Google and most others
        "169.254.170.2",  # Amazon's containers
        "169.254.170.23",
        "fd00:ec2::254",  # Amazon
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "fe80::a9fe:a9fe",  # OpenStack
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure
    )
)
"""Services that give whoever asks from a machine the secrets of the machine."""

_NAT64 = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48")))
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def parse_address(text: str) -> Address:
    """Return an address, without its zone.

    :raises ValueError: the text is no address.
    """
    return ipaddress.ip_address(text.partition("%")[0])


def reached(address: Address) -> Iterator[Address]:
    """Yield the address, and the IPv4 addresses to which a network may translate it."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    last = ipaddress.IPv4Address(address.packed[-4:])
    embedded = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _COMPATIBLE or any(address in network for network in _NAT64):
        embedded.append(last)
    yield from (inner for inner in embedded if inner is not None)


def is_metadata(address: Address) -> bool:
    """Return whether a metadata service may answer there."""
    return not METADATA.isdisjoint(reached(address))


def is_public(address: Address) -> bool:
    """Return whether only hosts of the public internet may answer there."""
    return all(part.is_global and not part.is_multicast and part not in METADATA for part in reached(address))
