"""Describes objects of the cloud as the resources of a template; pure."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..shapes import Json, JsonMap
from .cloud_objects import (
    FLOATING_IP,
    KEY_PAIR,
    KINDS,
    NETWORK,
    PORT,
    ROUTER,
    SECURITY_GROUP,
    SERVER,
    SERVER_GROUP,
    SUBNET,
    VOLUME,
    CloudKind,
    Inventory,
    RouterLink,
)

VERSION = "2018-08-31"
RETAIN = "retain"
DELETE = "delete"
ROUTER_INTERFACE = "OS::Neutron::RouterInterface"
ATTACHMENT = "OS::Cinder::VolumeAttachment"
NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
LONGEST_NAME = 100
SHORT_ID = 8
"""Characters of an id in the name of a resource."""
SERVICE_METADATA = ("readonly", "attached_mode")
"""Entries of a volume's metadata that the service makes."""


@dataclass(frozen=True)
class Adoption:
    """Objects as the resources of a stack.

    :ivar template: the template.
    :ivar ids: physical ids by the names of the resources.
    :ivar notes: sentences on what the template leaves out.
    """

    template: JsonMap
    ids: Mapping[str, str]
    notes: Sequence[str]

    @property
    def document(self) -> JsonMap:
        """Return the document that a stack is adopted from."""
        resources = {
            name: {"resource_id": physical_id, "type": self.template["resources"][name]["type"]}
            for name, physical_id in self.ids.items()
        }
        return {"action": "CREATE", "status": "COMPLETE", "template": self.template, "resources": resources}


class References:
    """The names that resources have, by the objects that they are."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._used: set[str] = set()

    def add(self, noun: str, label: str, object_id: str) -> str:
        """Name a resource after the kind and the name of an object; return the name, which no other has.

        :param label: the object's name; may be empty.
        """
        text = f"{noun.lower()} {label or object_id[:SHORT_ID]}"
        words = NOT_A_NAME.sub("_", text)[:LONGEST_NAME].strip("_")
        name = words
        for number in itertools.count(2):
            if name not in self._used:
                break
            name = f"{words}_{number}"
        self._used.add(name)
        self._names[noun, object_id] = name
        return name

    def has(self, kind: CloudKind, object_id: Json) -> bool:
        """Return whether an object is a resource that was named before."""
        return (kind.noun, object_id) in self._names

    def to(self, kind: CloudKind, object_id: Json) -> Json:
        """Return the reference to an object: to its resource where it is one, otherwise its id."""
        name = self._names.get((kind.noun, object_id))
        return object_id if name is None else {"get_resource": name}

    def label(self, kind: CloudKind, object_id: Json) -> str:
        """Return the name of an object's resource, or the beginning of its id."""
        return self._names.get((kind.noun, object_id), str(object_id)[:SHORT_ID])


def describe(inventory: Inventory, deletion_policy: str = RETAIN) -> Adoption:
    """Return objects as the resources of a stack.

    :param deletion_policy: `RETAIN`, or `DELETE`: whether the deletion of a resource deletes its object.
    """
    references = References()
    resources: dict[str, JsonMap] = {}
    ids: dict[str, str] = {}

    def add(name: str, type_name: str, physical_id: str, properties: JsonMap) -> None:
        policy = {"deletion_policy": RETAIN} if deletion_policy == RETAIN else {}
        resources[name] = {"type": type_name, **policy, "properties": properties}
        ids[name] = physical_id

    for kind in KINDS:
        for item in inventory.objects.get(kind.noun, ()):
            # Before it is named: a resource cannot refer to itself.
            properties = DESCRIPTIONS[kind.noun](item, references, inventory)
            object_id = str(item[kind.id_field])
            label = str(item.get("name") or item.get("floating_ip_address") or "")
            add(references.add(kind.noun, label, object_id), kind.type, object_id, properties)
    for interface in inventory.interfaces:
        label = f"{references.label(ROUTER, interface.router)} {references.label(SUBNET, interface.subnet)}"
        name = references.add("interface", label, interface.physical_id)
        add(name, ROUTER_INTERFACE, interface.physical_id, _router_interface(interface, references))
    for server, volume in _attachments(inventory):
        label = f"{references.label(SERVER, server)} {references.label(VOLUME, volume)}"
        name = references.add("attachment", label, f"{server} {volume}")
        add(name, ATTACHMENT, volume, _attachment(server, volume, references))
    template = {
        "heat_template_version": VERSION,
        "description": "Written by openstack stack adopt-resources.",
        "resources": resources,
    }
    return Adoption(template, ids, list(_notes(inventory, references)))


def _attachments(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Yield the ids of server and volume of each attachment, but for the disks that servers boot from."""
    for server in inventory.objects.get(SERVER.noun, ()):
        root = root_volume(server, inventory)
        for attachment in inventory.attachments.get(server["id"], ()):
            if attachment["volumeId"] != root:
                yield str(server["id"]), str(attachment["volumeId"])


def root_volume(server: JsonMap, inventory: Inventory) -> str | None:
    """Return the id of the volume from which a server boots; None: it boots from an image."""
    attachments = inventory.attachments.get(server["id"], ())
    if server.get("image") or not attachments:
        return None
    return str(attachments[0]["volumeId"])


def _notes(inventory: Inventory, references: References) -> Iterator[str]:
    if inventory.objects.get(SERVER.noun):
        yield (
            "No service shows the user_data of a server: a later template that sets it replaces the server, "
            "unless user_data_update_policy is IGNORE."
        )
    for router in inventory.objects.get(ROUTER.noun, ()):
        if router.get("routes"):
            yield f"{references.label(ROUTER, router['id'])}: its static routes stay, and are not adopted."


# -- descriptions ----------------------------------------------------------------------------------------


def _filled(item: JsonMap, *names: str) -> dict[str, Json]:
    """Return those of the fields that have a value."""
    return {name: item[name] for name in names if item.get(name) not in (None, "", [], {})}


def _unusual(item: JsonMap, **usual: Json) -> dict[str, Json]:
    """Return those of the fields that have another value than the usual one."""
    return {name: item[name] for name, value in usual.items() if item.get(name, value) not in (None, value)}


def _policy(item: JsonMap) -> dict[str, Json]:
    return {"qos_policy": item["qos_policy_id"]} if item.get("qos_policy_id") else {}


def _key_pair(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    return {**_filled(item, "name", "public_key"), **_unusual(item, type="ssh")}


def _server_group(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    return {"name": item["name"], "policies": [item["policy"]], **_filled(item, "rules")}


def _network(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    return {
        **_filled(item, "name", "dns_domain", "availability_zone_hints", "tags"),
        **_unusual(item, admin_state_up=True, shared=False, port_security_enabled=True),
        **_policy(item),
    }


def _subnet(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    return {
        "network": references.to(NETWORK, item["network_id"]),
        **_filled(item, "name", "cidr", "allocation_pools", "dns_nameservers", "host_routes", "tags"),
        **_filled(item, "ipv6_ra_mode", "ipv6_address_mode"),
        **_unusual(item, ip_version=4, enable_dhcp=True),
        # An empty address is none; without the property the service chooses one.
        "gateway_ip": item["gateway_ip"] or "",
    }


def _router(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    gateway = item.get("external_gateway_info") or {}
    described: dict[str, Json] = {}
    if gateway:
        described = {"network": references.to(NETWORK, gateway["network_id"])}
        described |= _unusual(gateway, enable_snat=True)
    return {
        **_filled(item, "name", "availability_zone_hints", "tags"),
        **_unusual(item, admin_state_up=True),
        **({"external_gateway_info": described} if described else {}),
    }


def _router_interface(interface: RouterLink, references: References) -> JsonMap:
    return {
        "router": references.to(ROUTER, interface.router),
        "subnet": references.to(SUBNET, interface.subnet),
    }


def _security_group(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    rules = [_rule(rule, item["id"], references) for rule in item["security_group_rules"]]
    return {
        **_filled(item, "name", "description"),
        **_unusual(item, stateful=True),
        "rules": sorted(rules, key=lambda rule: sorted((name, str(value)) for name, value in rule.items())),
    }


def _rule(rule: JsonMap, group: str, references: References) -> dict[str, Json]:
    described = {
        **_filled(rule, "direction", "ethertype", "protocol", "description", "remote_ip_prefix"),
        **_unusual(rule, port_range_min=None, port_range_max=None),
    }
    if remote := rule.get("remote_group_id"):
        # Without an id it is the group itself.
        described["remote_mode"] = "remote_group_id"
        if remote != group:
            described["remote_group_id"] = references.to(SECURITY_GROUP, remote)
    return described


def _port(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    addresses = [
        {"subnet": references.to(SUBNET, address["subnet_id"]), "ip_address": address["ip_address"]}
        for address in item["fixed_ips"]
    ]
    pairs = [
        {name: pair[name] for name in ("ip_address", "mac_address") if pair.get(name) != item["mac_address"]}
        for pair in item.get("allowed_address_pairs") or ()
    ]
    groups = [references.to(SECURITY_GROUP, group) for group in item.get("security_groups") or ()]
    return {
        "network": references.to(NETWORK, item["network_id"]),
        # The compute service sets the name in DNS of a port that a server has.
        **_filled(item, "name", "tags", *(() if item.get("device_id") else ("dns_name",))),
        **({"fixed_ips": addresses} if addresses else {"no_fixed_ips": True}),
        **({"security_groups": groups} if groups or item.get("port_security_enabled", True) else {}),
        **({"allowed_address_pairs": pairs} if pairs else {}),
        **_unusual(item, admin_state_up=True, port_security_enabled=True, **{"binding:vnic_type": "normal"}),
        **_policy(item),
    }


def _floating_ip(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    port = item.get("port_id")
    return {
        "floating_network": references.to(NETWORK, item["floating_network_id"]),
        **({"port_id": references.to(PORT, port)} if port else {}),
        **_filled(item, "fixed_ip_address", "dns_name", "dns_domain"),
    }


def _volume(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    stored = item.get("metadata") or {}
    metadata = {name: value for name, value in stored.items() if name not in SERVICE_METADATA}
    return {
        **_filled(item, "name", "description", "size", "volume_type", "availability_zone"),
        **({"metadata": metadata} if metadata else {}),
        **({"read_only": True} if stored.get("readonly") == "True" else {}),
    }


def _attachment(server: str, volume: str, references: References) -> JsonMap:
    return {"instance_uuid": references.to(SERVER, server), "volume_id": references.to(VOLUME, volume)}


def _server(item: JsonMap, references: References, inventory: Inventory) -> JsonMap:
    image = (item.get("image") or {}).get("id")
    key = item.get("key_name")
    group = inventory.groups.get(item["id"])
    return {
        "name": item["name"],
        "flavor": item["flavor"]["original_name"],
        **({"image": image} if image else {}),
        **({"block_device_mapping_v2": disks} if (disks := _disks(item, references, inventory)) else {}),
        **({"key_name": references.to(KEY_PAIR, key)} if key else {}),
        **({"availability_zone": zone} if (zone := item.get("OS-EXT-AZ:availability_zone")) else {}),
        **({"scheduler_hints": {"group": references.to(SERVER_GROUP, group)}} if group else {}),
        **({"config_drive": True} if item.get("config_drive") == "True" else {}),
        **_filled(item, "metadata", "tags"),
        "user_data_format": "RAW",
        "networks": _interfaces(item, references, inventory) or [{"allocate_network": "none"}],
    }


def _disks(item: JsonMap, references: References, inventory: Inventory) -> list[Json]:
    root = root_volume(item, inventory)
    return [
        {
            "volume_id": references.to(VOLUME, root),
            "boot_index": 0,
            "delete_on_termination": bool(attachment.get("delete_on_termination")),
        }
        for attachment in inventory.attachments.get(item["id"], ())
        if attachment["volumeId"] == root
    ]


def _interfaces(item: JsonMap, references: References, inventory: Inventory) -> list[Json]:
    """Return the entry of each port: of one that is not adopted its network and address."""
    entries: list[Json] = []
    for port in inventory.ports.get(item["id"], ()):
        if references.has(PORT, port["id"]):
            entries.append({"port": references.to(PORT, port["id"])})
        else:
            address = {"fixed_ip": port["fixed_ips"][0]["ip_address"]} if port["fixed_ips"] else {}
            entries.append({"network": references.to(NETWORK, port["network_id"]), **address})
    return entries


DESCRIPTIONS: Mapping[str, Callable[[JsonMap, References, Inventory], JsonMap]] = {
    KEY_PAIR.noun: _key_pair,
    SERVER_GROUP.noun: _server_group,
    NETWORK.noun: _network,
    SUBNET.noun: _subnet,
    ROUTER.noun: _router,
    SECURITY_GROUP.noun: _security_group,
    PORT.noun: _port,
    FLOATING_IP.noun: _floating_ip,
    VOLUME.noun: _volume,
    SERVER.noun: _server,
}
"""By the noun of a kind: the function that returns an object's properties."""
