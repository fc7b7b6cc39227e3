"""Addresses that users may name: as IANA's registries have them, whichever Python judges."""

import ipaddress
from collections.abc import Iterator

import pytest
from stoker.keystone.network_addresses import is_metadata, is_public, parse_address

UNREACHABLE = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.170/32",
    "192.0.0.171/32",
    "192.0.2.0/24",
    "192.88.99.2/32",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::1/128",
    "::/128",
    "::ffff:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001:2::/48",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
]
"""Not globally reachable: registries of special-purpose addresses, 9 October 2025."""
UNSAID = ["192.88.99.0/24", "2001::/23", "2001::/32", "2001:10::/28"]
"""Relays of 6to4, protocols, Teredo and the first ORCHID: deprecated, or reachable in parts."""
NEAREST = [
    "192.0.0.9/32",
    "192.0.0.10/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:20::/28",
    "2001:30::/28",
]
"""Globally reachable, but answered by the nearest machine, or by none."""
REACHABLE = [
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.175.48.0/24",
    "2620:4f:8000::/48",
    "8.8.8.0/24",
    "100.128.0.0/16",
    "172.32.0.0/16",
    "192.0.1.0/24",
    "198.20.0.0/16",
    "223.255.255.0/24",
    "2001:200::/23",
    "2001:4860::/32",
    "2a00::/12",
    "3ffe::/16",
]
OTHERS = ["224.0.0.0/4", "ff00::/8", "fec0::/10", "::/8", "4000::/3", "8000::/1", "168.63.129.16/32"]
"""Multicast, site-local, what IANA has not allocated, and the metadata service of Azure."""


def ends_of(block: str) -> Iterator[str]:
    network = ipaddress.ip_network(block)
    yield from (str(network[0]), str(network[-1]), str(network[network.num_addresses // 2]))


@pytest.mark.parametrize("block", [*UNREACHABLE, *UNSAID, *NEAREST, *OTHERS])
def test_no_special_address_is_public(block: str) -> None:
    assert [address for address in ends_of(block) if is_public(parse_address(address))] == []


@pytest.mark.parametrize("block", REACHABLE)
def test_addresses_of_the_internet_are_public(block: str) -> None:
    assert [address for address in ends_of(block) if not is_public(parse_address(address))] == []


EMBEDDED = {
    "64:ff9b::{0:x}:{1:x}": "NAT64",
    "2002:{0:x}:{1:x}::1": "6to4",
    "2a00::5efe:{0:x}:{1:x}": "ISATAP",
    "2a00::200:5efe:{0:x}:{1:x}": "ISATAP",
}
LOCAL = {
    "::{0:x}:{1:x}": "compatible",
    "::ffff:{0:x}:{1:x}": "mapped",
    "::ffff:0:{0:x}:{1:x}": "translated",
    "64:ff9b:1::{0:x}:{1:x}": "NAT64 of the operator's, 96 bits",
    "2001:0:{0:x}:{1:x}::": "Teredo's server",
}


@pytest.mark.parametrize("form", EMBEDDED | LOCAL)
def test_an_address_is_as_public_as_the_one_inside(form: str) -> None:
    def inside(inner: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        number = int(ipaddress.IPv4Address(inner))
        return parse_address(form.format(number >> 16, number & 0xFFFF))

    assert is_public(inside("8.8.8.8")) == (form in EMBEDDED)
    assert [inner for inner in ("10.0.0.1", "127.0.0.1", "192.0.2.1") if is_public(inside(inner))] == []
    assert is_metadata(inside("169.254.169.254"))
    assert not is_metadata(inside("8.8.8.8"))


@pytest.mark.parametrize(
    "address",
    [
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:5:a9:fea9:fe00:0",
        "2001:0:808:808:0:1:5601:5601",
    ],
)
def test_a_metadata_service_is_noticed_behind_each_length_of_a_prefix(address: str) -> None:
    assert is_metadata(parse_address(address))
