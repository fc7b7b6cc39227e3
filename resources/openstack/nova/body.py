"""The body that creates a server, with its disks, and the creation itself."""

import base64
import functools
import json
from collections.abc import Sequence

from ....shapes import Json, JsonMap
from ...contract import ResourceView, StepContext, physical_name
from ..bodies import Find, without_nulls
from ..marks import TagMark, mark_of
from ..names import resolve
from ..service import object_of, service_of
from .interfaces import Nic, ServerPorts, nics_of
from .user_data import server_user_data

WITH_FILES = "2.56"
"""The newest microversion that takes files, and tells their limits; 2.57 has removed them."""
COPIED = ("device_type", "disk_bus", "boot_index", "volume_size", "delete_on_termination", "volume_type")
"""Properties that are fields of the body by the same name."""
SAME = {
    "key_name": "key_name",
    "availability_zone": "availability_zone",
    "diskConfig": "OS-DCF:diskConfig",
    "config_drive": "config_drive",
    "admin_pass": "adminPass",
}
"""Field by property, for those whose values are taken as they are."""


def server_name(target: ResourceView) -> str:
    """Return the server's name; without one it is made of the stack's and the resource's."""
    key = target.creation_key or target.key
    return str(target.properties["name"] or physical_name(target.stack.name, target.name, key))


def server_body(target: ResourceView, context: StepContext, nics: Sequence[Nic]) -> dict[str, Json]:
    """Return the fields of a new server.

    :param nics: the entries of its networks, each with the port that was made for it.
    """
    properties = target.properties
    find = functools.partial(resolve, context)
    image = find("glance.image", properties["image"]) if properties["image"] else None
    body = {
        "name": server_name(target),
        "flavorRef": find("nova.flavor", properties["flavor"]),
        **({"imageRef": image} if image else {}),
        **{field: properties[name] for name, field in SAME.items() if properties[name]},
        "networks": networks_field(properties["networks"], nics),
    }
    if properties["config_drive"] is not None:
        body["config_drive"] = properties["config_drive"]
    if user_data := server_user_data(target, context):
        body["user_data"] = encoded(user_data)
    if properties["metadata"]:
        body["metadata"] = metadata_field(properties["metadata"])
    if properties["security_groups"]:
        body["security_groups"] = [{"name": group} for group in properties["security_groups"]]
    if properties["tags"]:
        body["tags"] = list(properties["tags"])
    if properties["personality"]:
        files = properties["personality"].items()
        body["personality"] = [{"path": path, "contents": encoded(text or "")} for path, text in files]
    if properties["block_device_mapping"]:
        body["block_device_mapping"] = legacy_devices(properties["block_device_mapping"])
    if properties["block_device_mapping_v2"]:
        body["block_device_mapping_v2"] = devices(properties["block_device_mapping_v2"], image, find)
    return body


def networks_field(entries: Sequence[JsonMap] | None, nics: Sequence[Nic]) -> Json:
    """Return the interfaces of a new server; without any the service chooses a network."""
    if not entries:
        return "auto"
    if allocated := next((entry["allocate_network"] for entry in entries if entry["allocate_network"]), None):
        return allocated
    return [_interface(nic) for nic in nics]


def _interface(nic: Nic) -> dict[str, Json]:
    if nic.port:
        return without_nulls({"port": nic.port, "tag": nic.tag})
    return without_nulls({"uuid": nic.network, "fixed_ip": nic.fixed_ip, "tag": nic.tag})


def metadata_field(metadata: JsonMap | None) -> dict[str, str]:
    """Return metadata as the service takes it: a value that is no text becomes JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (metadata or {}).items()
    }


def encoded(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()


def legacy_devices(mappings: Sequence[JsonMap]) -> list[dict[str, Json]]:
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


def devices(mappings: Sequence[JsonMap], image: str | None, find: Find) -> list[dict[str, Json]]:
    """Return the body's list for the newer property.

    :param image: id of the server's image, which becomes the first disk; None: there is none.
    """
    first = {"uuid": image, "source_type": "image", "destination_type": "local"}
    root = [{**first, "boot_index": 0, "delete_on_termination": True}] if image else []
    return [*root, *(_device(mapping, find) for mapping in mappings)]


def _device(mapping: JsonMap, find: Find) -> dict[str, Json]:
    device = {
        **_source(mapping, find),
        **{name: mapping[name] for name in COPIED if mapping[name] is not None},
    }
    if mapping.get("device_name"):
        device["device_name"] = mapping["device_name"]
    return device


def _source(mapping: JsonMap, find: Find) -> dict[str, Json]:
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


def create_server(target: ResourceView, context: StepContext, ports: ServerPorts) -> JsonMap:
    """Make the ports that the compute service cannot make, and create the server.

    :returns: the server's id, and a password that must not be stored.
    :raises Conflict, PermanentError, RetryableError: the errors of `Service`.
    """
    properties = target.properties
    nics = ports.with_ports(nics_of(properties["networks"], context), properties["security_groups"])
    body = server_body(target, context, nics)
    TagMark().put(body, mark_of(target.key))
    hints = properties["scheduler_hints"]
    headers = {"OpenStack_API_Version": f"compute {WITH_FILES}"} if properties["personality"] else {}
    whole = {"server": body, **({"os:scheduler_hints": hints} if hints else {})}
    return object_of(service_of(context, "compute").post("/servers", whole, **headers), "server")
