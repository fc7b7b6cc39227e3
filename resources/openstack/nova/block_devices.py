"""The disks of a new server: the properties block_device_mapping and block_device_mapping_v2."""

from collections.abc import Mapping, Sequence

from ...contract.views import Json
from ...errors import PropertyError
from ..bodies import Find, without_nulls

SOURCES = ("volume_id", "snapshot_id", "image", "swap_size")
"""Properties that say what a disk is made of, but for an ephemeral one."""
COPIED = ("device_type", "disk_bus", "boot_index", "volume_size", "delete_on_termination", "volume_type")
"""Properties that are fields of the body by the same name."""


def legacy_devices(mappings: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """Return the body's list for the older property; a snapshot wins over a volume, as in Heat."""
    converted = []
    for mapping in mappings:
        device = without_nulls(mapping)
        if device.get("snapshot_id"):
            device.pop("volume_id", None)
        if not device.get("delete_on_termination"):
            device.pop("delete_on_termination", None)
        converted.append(device)
    return converted


def devices(mappings: Sequence[Mapping[str, Json]], image: str | None, find: Find) -> list[dict[str, Json]]:
    """Return the body's list for the newer property.

    :param image: id of the server's image, which becomes the first disk; None: there is none.
    """
    first = {"uuid": image, "source_type": "image", "destination_type": "local"}
    root = [{**first, "boot_index": 0, "delete_on_termination": True}] if image else []
    return [*root, *(_device(mapping, find) for mapping in mappings)]


def _device(mapping: Mapping[str, Json], find: Find) -> dict[str, Json]:
    device = {
        **_source(mapping, find),
        **{name: mapping[name] for name in COPIED if mapping[name] is not None},
    }
    if mapping.get("device_name"):
        device["device_name"] = mapping["device_name"]
    return device


def _source(mapping: Mapping[str, Json], find: Find) -> dict[str, Json]:
    for name, kind in (("volume_id", "volume"), ("snapshot_id", "snapshot"), ("image", "image")):
        if mapping.get(name):
            source_id = find(f"{'glance' if kind == 'image' else 'cinder'}.{kind}", mapping[name])
            stored = {"uuid": source_id, "source_type": kind, "destination_type": "volume"}
            return {**stored, "boot_index": 0, "delete_on_termination": False}
    blank = {"source_type": "blank", "destination_type": "local", "boot_index": -1}
    device: dict[str, Json] = {**blank, "delete_on_termination": True}
    if mapping.get("swap_size"):
        return {**device, "guest_format": "swap", "volume_size": mapping["swap_size"]}
    if mapping.get("ephemeral_size"):
        device["volume_size"] = mapping["ephemeral_size"]
    if mapping.get("ephemeral_format"):
        device["guest_format"] = mapping["ephemeral_format"]
    return device


def check_devices(properties: Mapping[str, Json]) -> None:
    """Check that each disk has one source, and the server one disk to boot from.

    :param properties: unknown ones are absent.
    :raises PropertyError: with the property's name and what is right.
    """
    if any(name not in properties for name in ("image", "block_device_mapping", "block_device_mapping_v2")):
        return
    image = properties["image"]
    older = properties["block_device_mapping"] or []
    newer = properties["block_device_mapping_v2"] or []
    if older and newer:
        raise PropertyError("block_device_mapping and block_device_mapping_v2 cannot both be given")
    for index, mapping in enumerate(older):
        if (mapping["volume_id"] is None) == (mapping["snapshot_id"] is None):
            text = "exactly one of volume_id and snapshot_id is needed"
            raise PropertyError(text, ("block_device_mapping", index))
    for index, mapping in enumerate(newer):
        _check_source(mapping, index)
    bootable = [mapping for mapping in newer if _is_bootable(mapping)]
    if len(bootable) + (image is not None) > 1 and newer:
        text = "more than one of image and the disks has boot_index 0, which is the default"
        raise PropertyError(text, ("block_device_mapping_v2",))
    if image is None and not bootable and not any(item["device_name"] == "vda" for item in older):
        raise PropertyError("neither an image nor a disk to boot from is given")


def _check_source(mapping: Mapping[str, Json], index: int) -> None:
    sources = [name for name in SOURCES if mapping[name] is not None]
    if mapping["ephemeral_size"] or mapping["ephemeral_format"]:
        sources.append("ephemeral_size")
    if len(sources) != 1:
        source_names = ", ".join(sources) or "none"
        names = "volume_id, snapshot_id, image, swap_size, and ephemeral_size or ephemeral_format"
        raise PropertyError(
            f"exactly one is needed of {names}; found: {source_names}", ("block_device_mapping_v2", index)
        )


def _is_bootable(mapping: Mapping[str, Json]) -> bool:
    has_data = any(mapping[name] is not None for name in ("volume_id", "snapshot_id", "image"))
    return has_data and mapping["boot_index"] in (None, 0)
