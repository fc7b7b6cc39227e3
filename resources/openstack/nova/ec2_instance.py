"""AWS::EC2::Instance: a server under the names of CloudFormation."""

from collections.abc import Mapping

from ....shapes import Json, JsonMap
from ....template.constraints import Custom
from ...contract import Attribute, Property, PropertyError, ResourceView
from ..declared import REMOTE
from ..translated import TranslatedType, pairs, tags
from .launch_schema import COMMON, FLAVOR, IMAGE, INSTANCE, OLD, check_volumes
from .server import Server
from .user_data import CFNTOOLS, COLLECTORS

ZONE = "AvailabilityZone"
ADDRESSES = ("PrivateDnsName", "PublicDnsName", "PrivateIp", "PublicIp")
"""Attributes that are all the first address, as in Heat."""
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - it is what Heat shows, nothing listens there
INTERFACE = "NetworkInterfaceId"
PLACE = "DeviceIndex"
_VOLUME = {
    "Device": Property("string", "Device name in the server, such as /dev/vdc.", required=True),
    "VolumeId": Property(
        "string",
        "Name or id of the volume.",
        required=True,
        constraints=(Custom(check_name="cinder.volume"),),
    ),
}


def _place(entry: Json) -> int | None:
    """Return the place of an interface among the others; None: the entry is malformed."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get(INTERFACE), str):
        return None
    try:
        return int(entry[PLACE])
    except (KeyError, TypeError, ValueError):
        return None


def _groups(properties: JsonMap) -> list[Json]:
    """Return all security groups."""
    return [*(properties.get("SecurityGroups") or ()), *(properties.get("SecurityGroupIds") or ())]


def _networks(properties: JsonMap) -> list[Json] | None:
    """Return the interfaces of a server; None: the compute service chooses."""
    interfaces = properties.get("NetworkInterfaces")
    subnet = properties.get("SubnetId")
    if not interfaces:
        return [{"subnet": subnet}] if subnet else None
    entries = [
        {INTERFACE: entry, PLACE: index} if isinstance(entry, str) else entry
        for index, entry in enumerate(interfaces)
    ]
    return [{"port": entry[INTERFACE]} for entry in sorted(entries, key=lambda entry: _place(entry) or 0)]


def _hints(properties: JsonMap) -> dict[str, Json] | None:
    """Return the hints for the scheduler; a key that is given twice has a list of values."""
    values: dict[str, list[Json]] = {}
    for entry in properties.get("NovaSchedulerHints") or ():
        values.setdefault(entry["Key"], []).append(entry["Value"])
    return {
        key: values_of_name[0] if len(values_of_name) == 1 else values_of_name
        for key, values_of_name in values.items()
    } or None


def _disks(properties: JsonMap) -> list[Json] | None:
    """Return the further disks: new ones of snapshots, and volumes that are there already."""
    disks: list[Json] = []
    for mapping in properties.get("BlockDeviceMappings") or ():
        ebs = mapping["Ebs"] or {}
        disks.append(
            {
                "device_name": mapping["DeviceName"],
                "snapshot_id": ebs.get("SnapshotId"),
                "volume_size": ebs.get("VolumeSize") or None,
                "delete_on_termination": ebs.get("DeleteOnTermination"),
                "boot_index": -1,
            }
        )
    for volume in properties.get("Volumes") or ():
        disks.append(
            {
                "device_name": volume["Device"],
                "volume_id": volume["VolumeId"],
                "delete_on_termination": False,
                "boot_index": -1,
            }
        )
    return disks or None


class Ec2Instance(TranslatedType):
    """A server; its inner type is OS::Nova::Server."""

    type_name = INSTANCE
    inner = Server()
    description = "A virtual machine, under the names of CloudFormation."
    support_status = OLD
    service = "compute"
    guest_collectors = COLLECTORS
    identity = "a tag"
    properties_schema = {
        "ImageId": Property(
            "string", "Name or id of the image to boot from.", required=True, constraints=(IMAGE,)
        ),
        "InstanceType": Property(
            "string",
            "Name or id of the flavor.",
            required=True,
            update_allowed=True,
            constraints=(FLAVOR,),
        ),
        **COMMON,
        ZONE: Property("string", "Availability zone."),
        "SecurityGroupIds": Property("list", "Names or ids of additional security groups."),
        "NetworkInterfaces": Property(
            "list",
            "Network interfaces: ids of ports, or maps with NetworkInterfaceId and DeviceIndex.",
            update_allowed=True,
        ),
        "SubnetId": Property(
            "string",
            "Name or id of the subnet for the server's port; without effect with NetworkInterfaces.",
            update_allowed=True,
            names="neutron.subnet",
        ),
        "Tags": pairs("Metadata of the server.", update_allowed=True),
        "Volumes": Property(
            "list",
            "Volumes to attach when the server is created.",
            default=[],
            schema=Property("map", "Volume attachment.", schema=_VOLUME),
        ),
    }
    attributes_schema = {
        ZONE: Attribute("Availability zone.", "string"),
        **{name: Attribute("First IP address of the server.", "string", volatile=True) for name in ADDRESSES},
    }
    translation = {
        "image": "ImageId",
        "flavor": "InstanceType",
        "key_name": "KeyName",
        "availability_zone": ZONE,
        "security_groups": _groups,
        "user_data": "UserData",
        "user_data_format": lambda _: CFNTOOLS,
        "metadata": tags,
        "scheduler_hints": _hints,
        "networks": _networks,
        "block_device_mapping_v2": _disks,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the volumes, the interfaces, and that security groups are those of a port of its own."""
        check_volumes(properties)
        interfaces = properties.get("NetworkInterfaces") or ()
        for index, entry in enumerate(interfaces):
            if not isinstance(entry, str) and _place(entry) is None:
                text = f"an entry is the id of a port, or a map with {INTERFACE} and {PLACE}, a number"
                raise PropertyError(text, ("NetworkInterfaces", index))
        if interfaces and (properties.get("SecurityGroups") or properties.get("SecurityGroupIds")):
            text = (
                "Cannot define the following properties at the same time: "
                "SecurityGroups/SecurityGroupIds, NetworkInterfaces."
            )
            raise PropertyError(text, ("NetworkInterfaces",))

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the first address, under each of its names, and the availability zone."""
        attributes = self.inner.attribute_values(self.inside(target))
        address = attributes["first_address"] or NO_ADDRESS
        server = target.data.get(REMOTE) or {}
        zone = server.get("OS-EXT-AZ:availability_zone") or target.properties[ZONE] or None
        return {ZONE: zone, **dict.fromkeys(ADDRESSES, address), "show": attributes["show"]}
