"""Sizes of volumes that are copies, and the amounts of quotas that a volume takes; pure."""

from ...contract import CloudFacts, KnownResource, QuotaNeeds
from ..lists import named


def size_of_snapshot(snapshot: str, cloud: CloudFacts) -> int | None:
    """Return the size of the volume of which a snapshot was taken, in GiB; None: it is not known."""
    return _size(named(cloud.members("block-storage", "/snapshots", "snapshots"), snapshot))


def volume_needs(volume: KnownResource, cloud: CloudFacts) -> QuotaNeeds:
    """Return the amounts that a volume takes, also of the quotas of its volume type."""
    size = _size_of(volume, cloud)
    volume_type = _type_of(volume, cloud)
    needs: dict[str, int | None] = {"volumes": 1, "gigabytes": size}
    if volume_type:
        needs |= {f"volumes_{volume_type}": 1, f"gigabytes_{volume_type}": size}
    return needs


def _size_of(volume: KnownResource, cloud: CloudFacts) -> int | None:
    values = volume.values
    size = values.get("size", "unknown")
    if size == "unknown" or values.get("backup_id", "unknown") is not None:
        return size if isinstance(size, int) else None
    if size is not None:
        return int(size)
    if isinstance(snapshot := volume.thing("snapshot_id"), str):
        return size_of_snapshot(snapshot, cloud)
    if isinstance(source := volume.thing("source_volid"), str):
        return _size(named(cloud.members("block-storage", "/volumes/detail", "volumes"), source))
    return None


def _size(thing: object) -> int | None:
    size = thing.get("size") if isinstance(thing, dict) else None
    return size if isinstance(size, int) else None


def _type_of(volume: KnownResource, cloud: CloudFacts) -> str:
    """Return the name of the volume type; "": it is not known."""
    if "volume_type" not in volume.values:
        return ""
    value = volume.thing("volume_type")
    if value is None:
        default = cloud.entry("block-storage", "/types/default", "volume_type")
        return str((default or {}).get("name") or "")
    thing = named(cloud.members("block-storage", "/types", "volume_types"), value)
    return str((thing or {}).get("name") or "")
