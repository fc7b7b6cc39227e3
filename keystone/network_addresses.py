"""Addresses of hosts, and those inside of addresses, to which users may not send Stoker.

The tables are Stoker's own: those of Python's `ipaddress` differ between its patch releases.
"""

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

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that IANA allocates for unicast on the internet; nothing outside but NAT64 leads there."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_TEREDO = ipaddress.IPv6Network("2001::/32")
_6TO4 = ipaddress.IPv6Network("2002::/16")
_LAST_FOUR = (
    _NAT64,
    ipaddress.IPv6Network("::/96"),  # compatible
    ipaddress.IPv6Network("::ffff:0:0/96"),  # mapped
    ipaddress.IPv6Network("::ffff:0:0:0/96"),  # translated, RFC 2765
)
"""Networks whose addresses end with an IPv4 address."""
_NAT64_OCTETS = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
"""Positions of an IPv4 address behind prefixes of 48, 56, 64 and 96 bits: RFC 6052, section 2.2."""
_ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
"""The octets before the IPv4 address of a host, RFC 5214, section 6.1."""

_SPECIAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a provider
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocols: the nearest machine answers, which is the operator's
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4 and 6a44: the nearest one
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocols, as 192.0.0.0/24; Teredo, benchmarks, identifiers that nobody routes
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
"""IANA's registries of special-purpose addresses, as of 9 October 2025, with multicast.

IPv6 addresses outside of `_UNICAST` need no entry.
"""


def parse_address(text: str) -> Address:
    """Return an address, without its zone.

    :raises ValueError: the text is no address.
    """
    return ipaddress.ip_address(text.partition("%")[0])


def reached(address: Address) -> Iterator[Address]:
    """Yield the address, and the IPv4 addresses to which a network may translate it."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        yield from map(ipaddress.IPv4Address, _embedded(address))


def _embedded(address: ipaddress.IPv6Address) -> Iterator[bytes]:
    octets = address.packed
    if any(address in network for network in _LAST_FOUR) or octets[8:12] in _ISATAP:
        yield octets[12:]
    if address in _NAT64_LOCAL:  # Its operator chooses how long the prefix is.
        yield from (bytes(octets[position] for position in positions) for positions in _NAT64_OCTETS)
    if address in _6TO4:
        yield octets[2:6]
    if address in _TEREDO:
        yield octets[4:8]  # its server
        yield bytes(octet ^ 0xFF for octet in octets[12:])  # its client, RFC 4380, section 4


def is_metadata(address: Address) -> bool:
    """Return whether a metadata service may answer there."""
    return not METADATA.isdisjoint(reached(address))


def is_public(address: Address) -> bool:
    """Return whether only hosts of the public internet may answer there."""
    return all(_is_ordinary(inner) and inner not in METADATA for inner in reached(address))


def _is_ordinary(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST and address not in _NAT64:
        return False
    return not any(address in network for network in _SPECIAL)
