"""The body that creates a server."""

import base64
import functools
import json
from collections.abc import Mapping, Sequence

from ...contract.context import StepContext
from ...contract.views import Json, ResourceView, physical_name
from ..bodies import without_nulls
from ..names import resolve
from .block_devices import devices, legacy_devices
from .networks import Nic
from .user_data import server_user_data

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

    :param nics: each with the port that was made for it.
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


def networks_field(entries: Sequence[Mapping[str, Json]] | None, nics: Sequence[Nic]) -> Json:
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


def metadata_field(metadata: Mapping[str, Json] | None) -> dict[str, str]:
    """Return metadata as the service takes it: what is not text becomes JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (metadata or {}).items()
    }


def encoded(text: str) -> str:
    """Return a text in base64."""
    return base64.b64encode(text.encode()).decode()
