"""The properties and attributes of OS::Nova::Server."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom, Length, Range
from ...contract import WITHOUT_EFFECT, Attribute, ImpliedDependency, Property, SupportStatus
from ...guests import COLLECT_CONFIG, TRANSPORT
from ..neutron.schema import EXTRA_PROPERTIES

HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")

_BLOCK_DEVICE = {
    "device_name": Property("string", "Device name in the server, such as vda.", required=True),
    "volume_id": Property(
        "string", "Name or id of the volume to attach.", constraints=(Custom(check_name="cinder.volume"),)
    ),
    "snapshot_id": Property(
        "string",
        "Name or id of the snapshot that a new volume is created from.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "volume_size": Property("integer", "Size of the new volume, in GB; if omitted, that of the snapshot."),
    "delete_on_termination": Property("boolean", "Deletion of the volume with the server."),
}
_BLOCK_DEVICE_V2 = {
    "device_name": Property("string", "Device name in the server, such as vda; some hypervisors ignore it."),
    "volume_id": Property(
        "string", "Name or id of the volume to attach.", constraints=(Custom(check_name="cinder.volume"),)
    ),
    "image": Property(
        "string",
        "Name or id of the image that a new volume is created from.",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "image_id": Property(
        "string",
        "Old name of image.",
        support_status=HIDDEN,
        alias_of="image",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "snapshot_id": Property(
        "string",
        "Name or id of the snapshot that a new volume is created from.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "swap_size": Property("integer", "Size of a swap disk, in MB."),
    "ephemeral_size": Property(
        "integer", "Size of an ephemeral disk, in GB.", constraints=(Range(minimum=1),)
    ),
    "ephemeral_format": Property(
        "string",
        "File system of the ephemeral disk.",
        constraints=(AllowedValues(values=("ext2", "ext3", "ext4", "xfs", "ntfs")),),
    ),
    "device_type": Property("string", "Device type.", constraints=(AllowedValues(values=("cdrom", "disk")),)),
    "disk_bus": Property(
        "string",
        "Disk bus.",
        constraints=(AllowedValues(values=("ide", "lame_bus", "sata", "scsi", "usb", "virtio")),),
    ),
    "boot_index": Property(
        "integer", "Boot order: 0 is the first boot device, a negative number no boot device."
    ),
    "volume_size": Property("integer", "Size of the new volume, in GB; if omitted, that of its source."),
    "delete_on_termination": Property("boolean", "Deletion of the volume with the server."),
    "volume_type": Property(
        "string",
        "Name or id of the type of the new volume.",
        constraints=(Custom(check_name="cinder.vtype"),),
    ),
}
_NETWORK = {
    "uuid": Property(
        "string",
        "Old name of network.",
        support_status=HIDDEN,
        alias_of="network",
        constraints=(Custom(check_name="neutron.network"),),
    ),
    "network": Property(
        "string",
        "Name or id of the network for a new port.",
        constraints=(Custom(check_name="neutron.network"),),
    ),
    "allocate_network": Property(
        "string",
        "Automatic allocation: auto: a network chosen or created by the service; none: no interface.",
        update_allowed=True,
        constraints=(AllowedValues(values=("none", "auto")),),
    ),
    "fixed_ip": Property(
        "string", "Fixed IP address of the new port.", constraints=(Custom(check_name="ip_addr"),)
    ),
    "port": Property(
        "string", "Name or id of an existing port.", constraints=(Custom(check_name="neutron.port"),)
    ),
    "port_extra_properties": Property(
        "map", "Additional properties of the new port.", update_allowed=True, schema=EXTRA_PROPERTIES
    ),
    "subnet": Property(
        "string", "Name or id of the subnet for the new port's address.", names="neutron.subnet"
    ),
    "floating_ip": Property("string", "Id of the floating IP to associate with the port."),
    "tag": Property("string", "Device tag, shown to the server in its metadata."),
}
PROPERTIES: Mapping[str, Property] = {
    "name": Property(
        "string",
        "Name; if omitted, generated from the names of the stack and the resource.",
        update_allowed=True,
        constraints=(Length(maximum=255),),
    ),
    "image": Property(
        "string",
        "Name or id of the image to boot from; if omitted, block_device_mapping_v2 has the boot device.",
        update_allowed=True,
        constraints=(Custom(check_name="glance.image"),),
    ),
    "block_device_mapping": Property(
        "list",
        "Block devices in the old form.",
        schema=Property("map", "Block device.", schema=_BLOCK_DEVICE),
    ),
    "block_device_mapping_v2": Property(
        "list",
        "Block devices: disks of the server.",
        schema=Property("map", "Block device.", schema=_BLOCK_DEVICE_V2),
    ),
    "flavor": Property(
        "string",
        "Name or id of the flavor.",
        required=True,
        update_allowed=True,
        constraints=(Custom(check_name="nova.flavor"),),
    ),
    "flavor_update_policy": Property(
        "string",
        "Action for a new flavor: resize or replacement of the server.",
        default="RESIZE",
        update_allowed=True,
        constraints=(AllowedValues(values=("RESIZE", "REPLACE")),),
    ),
    "image_update_policy": Property(
        "string",
        "Action for a new image: rebuild of the server, with or without its ephemeral disk, or replacement.",
        default="REBUILD",
        update_allowed=True,
        constraints=(AllowedValues(values=("REBUILD", "REPLACE", "REBUILD_PRESERVE_EPHEMERAL")),),
    ),
    "key_name": Property("string", "Name of the key pair.", constraints=(Custom(check_name="nova.keypair"),)),
    "availability_zone": Property("string", "Availability zone."),
    "security_groups": Property(
        "list", "Names or ids of security groups for the ports that are created with the server.", default=[]
    ),
    "networks": Property(
        "list",
        "Network interfaces, in order; if omitted, the service chooses or creates a network.",
        update_allowed=True,
        schema=Property("map", "Network interface.", schema=_NETWORK),
    ),
    "scheduler_hints": Property("map", "Scheduler hints, by name."),
    "metadata": Property(
        "map",
        "Metadata by name; values that are not text are stored as JSON.",
        default={},
        update_allowed=True,
    ),
    "user_data_format": Property(
        "string",
        "Format of the user data. RAW: passed unchanged. HEAT_CFNTOOLS: run by heat-cfntools in the server. "
        "SOFTWARE_CONFIG: run by cloud-init, with os-collect-config for software deployments.",
        default="HEAT_CFNTOOLS",
        constraints=(AllowedValues(values=("HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG")),),
    ),
    "software_config_transport": TRANSPORT,
    "user_data_update_policy": Property(
        "string",
        "Action for new user data: replacement of the server, rebuild, or none.",
        default="REPLACE",
        update_allowed=True,
        constraints=(AllowedValues(values=("REPLACE", "IGNORE", "REBUILD")),),
    ),
    "user_data": Property(
        "string",
        "User data: a script or configuration for cloud-init, or the id of a software config.",
        default="",
        update_allowed=True,
    ),
    "admin_user": Property(
        "string",
        "Administrator account; without effect, because the image defines the accounts.",
        support_status=WITHOUT_EFFECT,
    ),
    "reservation_id": Property("string", "Reservation id; without effect."),
    "config_drive": Property("boolean", "Config drive: metadata also on a disk of the server."),
    "diskConfig": Property(
        "string",
        "Disk partitioning. AUTO: one partition of the flavor's size; MANUAL: the image's own partitions.",
        constraints=(AllowedValues(values=("AUTO", "MANUAL")),),
    ),
    "personality": Property(
        "map",
        "Personality: files to inject into the server, contents by path. Nova accepts them up to "
        "microversion 2.56.",
        default={},
    ),
    "admin_pass": Property("string", "Administrator password.", update_allowed=True, sensitive=True),
    "tags": Property(
        "list",
        "Tags.",
        update_allowed=True,
        constraints=(Length(maximum=50),),
        schema=Property("string", "Tag.", constraints=(Length(minimum=1, maximum=60),)),
    ),
    "deployment_swift_data": Property(
        "map",
        "Swift object for the metadata, with the transport POLL_TEMP_URL.",
        default={},
        update_allowed=True,
        schema={
            "container": Property("string", "Name of the container.", constraints=(Length(minimum=1),)),
            "object": Property("string", "Name of the object.", constraints=(Length(minimum=1),)),
        },
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "name": Attribute("Name.", "string"),
    "addresses": Attribute(
        "IP addresses by name and by id of the network, each with its port, subnets and network.",
        "map",
        volatile=True,
    ),
    "networks": Attribute("Lists of IP addresses by name and by id of the network.", "map", volatile=True),
    "first_address": Attribute(
        "First IP address; the attribute networks has all of them.",
        "string",
        support_status=SupportStatus("HIDDEN", message="Use the attribute networks."),
        volatile=True,
    ),
    "instance_name": Attribute("Instance name at the hypervisor; for administrators.", "string"),
    "accessIPv4": Attribute("IPv4 access address, as set by an API user.", "string", volatile=True),
    "accessIPv6": Attribute("IPv6 access address, as set by an API user.", "string", volatile=True),
    "console_urls": Attribute(
        "Console URLs; always null, because they expire within minutes. Ask the compute service for one.",
        "map",
    ),
    "tags": Attribute("Tags.", "list"),
    COLLECT_CONFIG: Attribute("Configuration of the agent os-collect-config, with its keys.", "map"),
    "show": Attribute("All fields, as the service's API returns them.", "map"),
}
IMPLIED = (ImpliedDependency("networks.*.network|uuid", "OS::Neutron::Subnet", "network|network_id"),)
"""A server gets its addresses from any subnet of its networks."""
