"""Rules for servers and key pairs that the cloud would refuse as it is now; pure."""

from collections.abc import Iterator

from ....shapes import Json, JsonMap
from ...contract import CloudFacts, KnownResource, Members, Misfit, PlannedStack
from ..cinder.fits import volumes_in_use
from ..images import image_misfits, image_of
from ..neutron.network_rules import SERVER
from .quota_needs import flavor_of

KEY_PAIR = "OS::Nova::KeyPair"


def images_that_do_not_fit(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the images that are not active, or need more than the flavor of their server has."""
    for server in stack.new_of_type(SERVER):
        flavor = flavor_of(server, stack.known, cloud) or {}
        image = image_of(server.thing("image"), cloud)
        if image is not None:
            # The disk of a flavor is 0 where the image decides.
            yield from image_misfits(server.name, ("image",), image, flavor.get("disk") or None)
            yield from _too_little_memory(server, image, flavor)
        for index, entry in enumerate(server.values.get("block_device_mapping_v2") or ()):
            path = ("block_device_mapping_v2", index, "image")
            source = image_of(server.thing(*path), cloud)
            if source is not None:
                yield from image_misfits(server.name, path, source, entry.get("volume_size"))


def _too_little_memory(server: KnownResource, image: JsonMap, flavor: JsonMap) -> Iterator[Misfit]:
    needed, available = image.get("min_ram"), flavor.get("ram")
    if isinstance(needed, int) and isinstance(available, int) and needed > available:
        yield Misfit(
            server.name,
            f"the image needs {needed} MiB of memory, but the flavor has {available}",
            ("flavor",),
            str(needed),
            str(available),
            "Use a larger flavor.",
        )


def zones_that_do_not_exist(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the servers whose availability zone does not exist, or is down."""
    for server in stack.new_of_type(SERVER):
        zone = server.thing("availability_zone")
        if not isinstance(zone, str) or ":" in zone:
            continue  # An administrator names a host, too.
        zones = cloud.members("compute", "/os-availability-zone", "availabilityZoneInfo")
        if zones is not None and zone not in (names := open_zones(zones)):
            yield Misfit(
                server.name,
                f"there is no availability zone {zone} for servers",
                ("availability_zone",),
                zone,
                ", ".join(names),
                "Use one that there is, or none.",
            )


def open_zones(zones: Json) -> list[str]:
    """Return the names of the zones that are not down."""
    return [
        str(zone.get("zoneName")) for zone in zones if (zone.get("zoneState") or {}).get("available", True)
    ]


def key_pairs_that_exist(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the key pairs whose names are taken."""
    taken: set[Json] | None = None
    for pair in stack.new_of_type(KEY_PAIR):
        name = pair.thing("name")
        is_own = pair.values.get("user", "unknown") is None
        if pair.name not in stack.created or not isinstance(name, str) or not is_own:
            continue
        if taken is None:
            pairs = cloud.members("compute", "/os-keypairs", "keypairs") or ()
            taken = {(entry.get("keypair") or {}).get("name") for entry in pairs}
        if name in taken:
            yield Misfit(
                pair.name,
                f"you have a key pair {name} already",
                ("name",),
                advice="Use another name, or the key pair that there is.",
            )


def ambiguous_groups(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the names that several security groups have; Nova looks at those of the project only."""
    mine = {"project_id": cloud.project_id, "fields": "id,name"}
    for server in stack.new_of_type(SERVER):
        for index, _ in enumerate(server.values.get("security_groups") or ()):
            name = server.thing("security_groups", index)
            if not isinstance(name, str):
                continue
            groups = cloud.members("network", "/security-groups", "security_groups", **mine) or Members()
            count = len(groups.where("name", name))
            if count > 1 and not groups.where("id", name):
                yield Misfit(
                    server.name,
                    f"{count} security groups have the name {name}",
                    ("security_groups", index),
                    advice="Use the id.",
                )


SERVER_FITS = (images_that_do_not_fit, zones_that_do_not_exist, ambiguous_groups, volumes_in_use)
