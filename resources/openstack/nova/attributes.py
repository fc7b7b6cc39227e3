"""The attributes of a server, computed from what was last read of it and of its interfaces."""

import typing
from collections.abc import Mapping

from ...contract.views import Json
from ..marks import PREFIX
from ..names import is_id

Addresses = Mapping[str, list[dict[str, Json]]]
MAC = "OS-EXT-IPS-MAC:mac_addr"
KIND = "OS-EXT-IPS:type"
"""Keys of a server's addresses."""


def users_tags(tags: typing.Iterable[str]) -> list[str]:
    """Return the tags without the mark, which is one of them."""
    return [tag for tag in tags if not is_mark(tag)]


def is_mark(tag: str) -> bool:
    """Return whether a tag is a mark."""
    return tag.startswith(PREFIX) and is_id(tag.removeprefix(PREFIX))


def _visible(server: Mapping[str, Json]) -> dict[str, Json]:
    """Return what the service reports of the server, without the mark."""
    return {**server, "tags": users_tags(server["tags"])} if "tags" in server else dict(server)


def attributes(
    server: Mapping[str, Json], data: Mapping[str, Json], metadata: Mapping[str, Json]
) -> dict[str, Json]:
    """Return all attributes.

    :param server: what the service last reported.
    :param data: of the resource.
    :param metadata: of the resource.
    """
    server = _visible(server)
    by_label: Addresses = server.get("addresses") or {}
    networks = {label: [entry["addr"] for entry in entries] for label, entries in by_label.items()}
    ids = _network_ids(data, by_label)
    detailed = {label: [_detailed(data, entry) for entry in entries] for label, entries in by_label.items()}
    return {
        "show": server,
        "name": server.get("name"),
        "accessIPv4": server.get("accessIPv4"),
        "accessIPv6": server.get("accessIPv6"),
        "instance_name": server.get("OS-EXT-SRV-ATTR:instance_name"),
        "networks": {**networks, **{ids[label]: networks[label] for label in ids}},
        "addresses": {**detailed, **{ids[label]: detailed[label] for label in ids}},
        "first_address": _first(networks),
        "tags": server.get("tags"),
        "os_collect_config": metadata.get("os-collect-config", {}),
        # Their tokens expire within minutes: a stored one is of no use.
        "console_urls": None,
    }


def _network_ids(data: Mapping[str, Json], by_label: Addresses) -> dict[str, str]:
    of_mac = {item["mac"]: str(item["network"]) for item in data.get("interfaces") or ()}
    return {
        label: of_mac[entries[0][MAC]]
        for label, entries in by_label.items()
        if entries and entries[0].get(MAC) in of_mac
    }


def _detailed(data: Mapping[str, Json], entry: Mapping[str, Json]) -> dict[str, Json]:
    """Return an address with its port, subnets and network; a floating one has none of them."""
    if entry.get(KIND) == "floating":
        return {**entry, "port": None}
    interfaces = [item for item in data.get("interfaces") or () if item["mac"] == entry.get(MAC)]
    if not interfaces:
        return {**entry, "port": None}
    subnets = [data["subnets"].get(subnet) for subnet, _ in interfaces[0]["fixed_ips"]]
    return {
        **entry,
        "port": interfaces[0]["port"],
        "subnets": [subnet for subnet in subnets if subnet is not None],
        "network": data["networks"].get(interfaces[0]["network"]),
    }


def _first(networks: Mapping[str, list[str]]) -> str:
    return next((networks[label][0] for label in sorted(networks, reverse=True) if networks[label]), "")
