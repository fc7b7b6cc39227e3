"""Amounts of quotas that a server takes at Nova, Neutron and Cinder, and its flavor; pure."""

from collections.abc import Mapping, Sequence

from ....shapes import Json, JsonMap
from ...contract import CloudFacts, KnownResource, KnownStack, Members, QuotaNeeds
from ..cinder.sizes import size_of_snapshot
from ..lists import named

FLAVOR = "OS::Nova::Flavor"


def flavor_of(server: KnownResource, stack: KnownStack, cloud: CloudFacts) -> JsonMap | None:
    """Return the flavor of a server: vcpus, ram (MiB), disk (GiB); None: it is not known."""
    thing = server.thing("flavor")
    made = stack.made(thing)
    if made is not None:
        return made.values if made.type == FLAVOR else None
    return named(flavors_of(cloud), thing)


def flavors_of(cloud: CloudFacts) -> Members | None:
    """Return the flavors that the caller may use; administrators may use those of all projects."""
    return cloud.members("compute", "/flavors/detail", "flavors", is_public="None")


def server_needs(server: KnownResource, stack: KnownStack, cloud: CloudFacts) -> QuotaNeeds:
    """Return the amounts that a server takes."""
    flavor = flavor_of(server, stack, cloud) or {}
    sizes = _new_volumes(server.values, cloud)
    return {
        "instances": 1,
        "cores": _whole(flavor.get("vcpus")),
        "ram": _whole(flavor.get("ram")),
        "network/port": _ports(server.values),
        "block-storage/volumes": None if sizes is None else len(sizes),
        "block-storage/gigabytes": None
        if sizes is None or None in sizes
        else sum(size or 0 for size in sizes),
    }


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _ports(values: JsonMap) -> int | None:
    """Return the number of ports that are made for a server; None: it is not known."""
    if "networks" not in values:
        return None
    entries: Sequence[JsonMap] | None = values["networks"]
    if not entries:
        return 1  # The service chooses a network.
    if any("network" not in entry and "port" not in entry for entry in entries):
        return None
    # A port that is not known is one that exists, or another resource makes.
    return sum(_makes_port(entry) for entry in entries)


def _makes_port(entry: JsonMap) -> bool:
    return entry.get("port", "unknown") is None and entry.get("allocate_network") != "none"


def _new_volumes(values: JsonMap, cloud: CloudFacts) -> list[int | None] | None:
    """Return the sizes in GiB of the volumes that the compute service makes for a server; None: not known."""
    sizes: list[int | None] = []
    for name, sources in (
        ("block_device_mapping_v2", ("image", "snapshot_id")),
        ("block_device_mapping", ("snapshot_id",)),
    ):
        if name not in values:
            return None
        for entry in values[name] or ():
            if any(entry.get(source, "unknown") is not None for source in sources):
                sizes.append(_size(entry, cloud))
    return sizes


def _size(entry: Mapping[str, Json], cloud: CloudFacts) -> int | None:
    if "volume_size" in entry and entry["volume_size"] is not None:
        return _whole(entry["volume_size"])
    snapshot = entry.get("snapshot_id")
    return size_of_snapshot(snapshot, cloud) if isinstance(snapshot, str) else None
