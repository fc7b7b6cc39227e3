"""Rules for volumes that the cloud would refuse as it is now; pure."""

from collections.abc import Iterator

from ....shapes import JsonMap
from ...contract import Certainty, CloudFacts, KnownResource, Misfit, PlannedStack, Thing
from ..images import image_misfits, image_of
from ..limits import allowance
from ..lists import named
from ..neutron.network_rules import SERVER

VOLUME = "OS::Cinder::Volume"


def volumes_without_a_zone(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the volumes whose availability zone does not exist, or is down."""
    for volume in stack.new_of_type(VOLUME):
        zone = volume.thing("availability_zone")
        is_free = volume.values.get("availability_zone", "unknown") is None
        if not isinstance(zone, str) and not is_free:
            continue
        zones = cloud.members("block-storage", "/os-availability-zone", "availabilityZoneInfo")
        names = [
            str(entry.get("zoneName"))
            for entry in zones or ()
            if (entry.get("zoneState") or {}).get("available", True)
        ]
        if is_free and zones and not names:
            yield Misfit(
                volume.name,
                "no availability zone has a volume service that is enabled",
                advice="Ask the operator: there is no host for any volume.",
                # The operator may have named another default zone, or enable a service meanwhile.
                certainty=Certainty.NOT_KNOWN,
            )
        elif isinstance(zone, str) and zones is not None and zone not in names:
            yield Misfit(
                volume.name,
                f"there is no availability zone {zone} for volumes",
                ("availability_zone",),
                zone,
                ", ".join(names),
                "Use one that there is, or none.",
                # Whether the service takes its default zone instead is the operator's decision.
                Certainty.NOT_KNOWN,
            )


def volumes_smaller_than_their_source(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the volumes that are smaller than the image, snapshot or volume of which they are a copy."""
    for volume in stack.new_of_type(VOLUME):
        size = volume.values.get("size")
        if (image := image_of(volume.thing("image"), cloud)) is not None:
            yield from image_misfits(volume.name, ("image",), image, size)
        for name, path, items in (
            ("snapshot_id", "/snapshots", "snapshots"),
            ("source_volid", "/volumes/detail", "volumes"),
        ):
            value = volume.thing(name)
            if not isinstance(value, str) or not isinstance(size, int):
                continue
            source = named(cloud.members("block-storage", path, items), value)
            needed = (source or {}).get("size")
            if isinstance(needed, int) and needed > size:
                yield Misfit(
                    volume.name,
                    f"the volume has {size} GiB, but its source {value} has {needed}",
                    ("size",),
                    str(needed),
                    str(size),
                    f"Make it {needed} GiB or larger.",
                )


def volumes_above_the_limit(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the volumes that are larger than one volume of the project may be."""
    for volume in stack.new_of_type(VOLUME):
        size = volume.values.get("size")
        if not isinstance(size, int):
            continue
        most = allowance(cloud, "block-storage", "per_volume_gigabytes")
        if most is not None and 0 <= most.limit < size:
            yield Misfit(
                volume.name,
                f"the volume has {size} GiB, above the limit of {most.limit} for one volume",
                ("size",),
                str(size),
                str(most.limit),
                "Use several volumes, or ask the operator for a larger quota of per_volume_gigabytes.",
            )


def volumes_in_use(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the volumes to be attached that another server has, or that failed."""
    for resource, path in _attached(stack):
        value = resource.thing(*path)
        if resource.name not in stack.created or not isinstance(value, str):
            continue
        volume = named(cloud.members("block-storage", "/volumes/detail", "volumes"), value)
        status = str((volume or {}).get("status") or "")
        is_taken = status == "in-use" and not (volume or {}).get("multiattach")
        if is_taken or status.startswith("error"):
            yield Misfit(
                resource.name,
                f"the volume {value} is {status}",
                path,
                "available",
                status,
                "Detach it, or use another volume.",
                stack.of_taken(*_holders(volume or {})) if is_taken else Certainty.CERTAIN,
            )


def _holders(volume: JsonMap) -> Iterator[str]:
    """Yield the ids of what has a volume: its attachments, and their servers."""
    yield str(volume.get("id"))  # That of an attachment at the compute service, too.
    for attachment in volume.get("attachments") or ():
        yield from (str(attachment.get(name)) for name in ("id", "attachment_id", "server_id"))


def volumes_in_another_zone(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the volumes whose zone is not that of the server that they are attached to.

    Whether it has to be the operator decides (``cross_az_attach`` of the compute service).
    """
    for resource, path, server in _attachments(stack):
        zone = server.thing("availability_zone")
        volume_zone = _zone_of(resource.thing(*path), stack, cloud)
        if isinstance(zone, str) and volume_zone and zone.partition(":")[0] != volume_zone:
            yield Misfit(
                resource.name,
                f"the volume is in the zone {volume_zone}, and its server in {zone}: some clouds refuse that",
                path,
                zone,
                volume_zone,
                "Give both the same zone, or ask the operator.",
                Certainty.NOT_KNOWN,
            )


def _zone_of(volume: Thing | None, stack: PlannedStack, cloud: CloudFacts) -> str:
    """Return the zone of a volume; "": it is not known."""
    new_volume = stack.made(volume)
    if new_volume is not None:
        zone = new_volume.thing("availability_zone") if new_volume.type == VOLUME else None
        return zone if isinstance(zone, str) else ""
    entry = named(cloud.members("block-storage", "/volumes/detail", "volumes"), volume)
    return str((entry or {}).get("availability_zone") or "")


def _attachments(
    stack: PlannedStack,
) -> Iterator[tuple[KnownResource, tuple[str | int, ...], KnownResource]]:
    """Yield the attachments to servers of the template that ask for a zone."""
    for resource, path in _attached(stack):
        server = stack.made(resource.thing("instance_uuid")) if path == ("volume_id",) else resource
        if server is not None and server.type == SERVER and server.thing("availability_zone") is not None:
            yield resource, path, server


def _attached(stack: PlannedStack) -> Iterator[tuple[KnownResource, tuple[str | int, ...]]]:
    for server in stack.new_of_type(SERVER):
        for name in ("block_device_mapping_v2", "block_device_mapping"):
            for index, _ in enumerate(server.values.get(name) or ()):
                yield server, (name, index, "volume_id")
    for attachment in stack.new_of_type("OS::Cinder::VolumeAttachment"):
        yield attachment, ("volume_id",)


VOLUME_FITS = (volumes_without_a_zone, volumes_smaller_than_their_source, volumes_above_the_limit)
