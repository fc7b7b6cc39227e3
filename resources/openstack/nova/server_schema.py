"""The properties and attributes of OS::Nova::Server."""

from collections.abc import Mapping

from ....template.constraints import AllowedValues, Custom, Length, Range
from ...guests import COLLECT_CONFIG, TRANSPORT
from ...implied import ImpliedDependency
from ...schema import WITHOUT_EFFECT, Attribute, Property, SupportStatus

HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")

_BLOCK_DEVICE = {
    "device_name": Property("string", "Name of the device in the server, such as vda.", required=True),
    "volume_id": Property(
        "string", "Volume to attach, by name or id.", constraints=(Custom(check_name="cinder.volume"),)
    ),
    "snapshot_id": Property(
        "string",
        "Snapshot to make a volume of, by name or id.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "volume_size": Property("integer", "Size of a new volume, in GB; none: that of the snapshot."),
    "delete_on_termination": Property("boolean", "The volume is deleted with the server."),
}
_BLOCK_DEVICE_V2 = {
    "device_name": Property(
        "string", "Name of the device in the server, such as vda; some hypervisors ignore it."
    ),
    "volume_id": Property(
        "string", "Volume to attach, by name or id.", constraints=(Custom(check_name="cinder.volume"),)
    ),
    "image": Property(
        "string",
        "Image to make a volume of, by name or id.",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "image_id": Property(
        "string",
        "Older name of image.",
        support_status=HIDDEN,
        alias_of="image",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "snapshot_id": Property(
        "string",
        "Snapshot to make a volume of, by name or id.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "swap_size": Property("integer", "Size of a swap disk, in MB."),
    "ephemeral_size": Property(
        "integer", "Size of an ephemeral disk, in GB.", constraints=(Range(minimum=1),)
    ),
    "ephemeral_format": Property(
        "string",
        "File system of an ephemeral disk.",
        constraints=(AllowedValues(values=("ext2", "ext3", "ext4", "xfs", "ntfs")),),
    ),
    "device_type": Property(
        "string", "Type of the device.", constraints=(AllowedValues(values=("cdrom", "disk")),)
    ),
    "disk_bus": Property(
        "string",
        "Bus that the device is attached to.",
        constraints=(AllowedValues(values=("ide", "lame_bus", "sata", "scsi", "usb", "virtio")),),
    ),
    "boot_index": Property(
        "integer", "Place in the order of boot devices; 0 is the first one, a negative one is none."
    ),
    "volume_size": Property("integer", "Size of a new volume, in GB; none: that of its source."),
    "delete_on_termination": Property("boolean", "The volume is deleted with the server."),
    "volume_type": Property(
        "string",
        "Type of a new volume, by name or id.",
        constraints=(Custom(check_name="cinder.vtype"),),
    ),
}
_ADDRESS_PAIR = {
    "mac_address": Property(
        "string", "MAC address; none: the port's.", constraints=(Custom(check_name="mac_addr"),)
    ),
    "ip_address": Property(
        "string", "Address or CIDR.", required=True, constraints=(Custom(check_name="ip_or_cidr"),)
    ),
}
_PORT = {
    "value_specs": Property(
        "map", "Further fields of the port, for extensions.", default={}, update_allowed=True
    ),
    "admin_state_up": Property("boolean", "The port is up.", default=True, update_allowed=True),
    "mac_address": Property("string", "MAC address.", constraints=(Custom(check_name="mac_addr"),)),
    "allowed_address_pairs": Property(
        "list",
        "Further addresses that may pass through the port.",
        update_allowed=True,
        schema=Property("map", "A further address.", schema=_ADDRESS_PAIR),
    ),
    "binding:vnic_type": Property(
        "string",
        "Type of the virtual network interface.",
        default="normal",
        update_allowed=True,
        constraints=(
            AllowedValues(
                values=(
                    *("normal", "direct", "macvtap", "direct-physical"),
                    *("baremetal", "virtio-forwarder", "smart-nic"),
                )
            ),
        ),
    ),
    "port_security_enabled": Property(
        "boolean", "Security groups protect the port; none: as the network says.", update_allowed=True
    ),
    "qos_policy": Property(
        "string",
        "QoS policy, by name or id.",
        update_allowed=True,
        constraints=(Custom(check_name="neutron.qos_policy"),),
    ),
    "propagate_uplink_status": Property(
        "boolean", "The state of the uplink is propagated to virtual functions.", update_allowed=True
    ),
    "no_fixed_ips": Property("boolean", "The port has no address.", default=False, update_allowed=True),
}
_NETWORK = {
    "uuid": Property(
        "string",
        "Older name of network.",
        support_status=HIDDEN,
        alias_of="network",
        constraints=(Custom(check_name="neutron.network"),),
    ),
    "network": Property(
        "string",
        "Network to make a port on, by name or id.",
        constraints=(Custom(check_name="neutron.network"),),
    ),
    "allocate_network": Property(
        "string",
        "auto: the service chooses or makes a network; none: the server has no interface.",
        update_allowed=True,
        constraints=(AllowedValues(values=("none", "auto")),),
    ),
    "fixed_ip": Property("string", "Address of the new port.", constraints=(Custom(check_name="ip_addr"),)),
    "port": Property(
        "string", "Existing port, by name or id.", constraints=(Custom(check_name="neutron.port"),)
    ),
    "port_extra_properties": Property(
        "map", "Further properties of the new port.", update_allowed=True, schema=_PORT
    ),
    "subnet": Property("string", "Subnet of the new port's address, by name or id."),
    "floating_ip": Property("string", "Id of a floating IP to associate with the port."),
    "tag": Property("string", "Tag of the device, which the server reads from its metadata."),
}
PROPERTIES: Mapping[str, Property] = {
    "name": Property("string", "Name; none: made of the stack's and the resource's.", update_allowed=True),
    "image": Property(
        "string",
        "Image to boot from, by name or id; none: a disk of block_device_mapping_v2.",
        update_allowed=True,
        constraints=(Custom(check_name="glance.image"),),
    ),
    "block_device_mapping": Property(
        "list",
        "Volumes of the server, in an older form.",
        schema=Property("map", "A volume.", schema=_BLOCK_DEVICE),
    ),
    "block_device_mapping_v2": Property(
        "list", "Disks of the server.", schema=Property("map", "A disk.", schema=_BLOCK_DEVICE_V2)
    ),
    "flavor": Property(
        "string",
        "Flavor, by name or id.",
        required=True,
        update_allowed=True,
        constraints=(Custom(check_name="nova.flavor"),),
    ),
    "flavor_update_policy": Property(
        "string",
        "How a new flavor is applied: the server is resized, or replaced.",
        default="RESIZE",
        update_allowed=True,
        constraints=(AllowedValues(values=("RESIZE", "REPLACE")),),
    ),
    "image_update_policy": Property(
        "string",
        "How a new image is applied: the server is rebuilt, with or without its ephemeral disk, or replaced.",
        default="REBUILD",
        update_allowed=True,
        constraints=(AllowedValues(values=("REBUILD", "REPLACE", "REBUILD_PRESERVE_EPHEMERAL")),),
    ),
    "key_name": Property(
        "string", "Name of the user's key pair.", constraints=(Custom(check_name="nova.keypair"),)
    ),
    "availability_zone": Property("string", "Availability zone."),
    "security_groups": Property(
        "list", "Security groups of the ports that are made, by name or id.", default=[]
    ),
    "networks": Property(
        "list",
        "Interfaces, in their order; none: the service chooses or makes a network.",
        update_allowed=True,
        schema=Property("map", "An interface.", schema=_NETWORK),
    ),
    "scheduler_hints": Property("map", "Hints for the scheduler, by name."),
    "metadata": Property(
        "map",
        "Metadata by name; what is not text becomes JSON.",
        default={},
        update_allowed=True,
    ),
    "user_data_format": Property(
        "string",
        "RAW: user_data is passed as it is. HEAT_CFNTOOLS: heat-cfntools in the server run it. "
        "SOFTWARE_CONFIG: cloud-init runs it, and os-collect-config applies software deployments.",
        default="HEAT_CFNTOOLS",
        constraints=(AllowedValues(values=("HEAT_CFNTOOLS", "RAW", "SOFTWARE_CONFIG")),),
    ),
    "software_config_transport": TRANSPORT,
    "user_data_update_policy": Property(
        "string",
        "How new user_data is applied: the server is replaced or rebuilt, or it is ignored.",
        default="REPLACE",
        update_allowed=True,
        constraints=(AllowedValues(values=("REPLACE", "IGNORE", "REBUILD")),),
    ),
    "user_data": Property(
        "string",
        "Script or configuration that cloud-init runs, or the id of a software config.",
        default="",
        update_allowed=True,
    ),
    "admin_user": Property(
        "string",
        "Accepted for older templates, and ignored: the image says who may log in.",
        support_status=WITHOUT_EFFECT,
    ),
    "reservation_id": Property("string", "Accepted for older templates, and ignored."),
    "config_drive": Property("boolean", "The server gets its metadata on a disk, too."),
    "diskConfig": Property(
        "string",
        "AUTO: one partition of the flavor's size is made; MANUAL: the image's partitions stay.",
        constraints=(AllowedValues(values=("AUTO", "MANUAL")),),
    ),
    "personality": Property(
        "map", "Files to put into the server: text by path. Nova takes them up to version 2.56.", default={}
    ),
    "admin_pass": Property("string", "Password of the administrator.", update_allowed=True, sensitive=True),
    "tags": Property("list", "Tags of the server.", update_allowed=True, schema=Property("string", "A tag.")),
    "deployment_swift_data": Property(
        "map",
        "Place in Swift for the transport POLL_TEMP_URL.",
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
        "Addresses by name and by id of the network, each with its port, subnets and network.",
        "map",
        volatile=True,
    ),
    "networks": Attribute("Lists of addresses by name and by id of the network.", "map", volatile=True),
    "first_address": Attribute(
        "First address; the attribute networks has all of them.",
        "string",
        support_status=SupportStatus("HIDDEN", message="Use the attribute networks."),
        volatile=True,
    ),
    "instance_name": Attribute("Name at the hypervisor, for administrators.", "string"),
    "accessIPv4": Attribute(
        "IPv4 address that somebody has declared to be the server's.", "string", volatile=True
    ),
    "accessIPv6": Attribute(
        "IPv6 address that somebody has declared to be the server's.", "string", volatile=True
    ),
    "console_urls": Attribute(
        "Always null: addresses of consoles expire within minutes. Ask the compute service for one.", "map"
    ),
    "tags": Attribute("Tags.", "list"),
    COLLECT_CONFIG: Attribute("Configuration of the agent os-collect-config, with its keys.", "map"),
    "show": Attribute("All that the service reports of it.", "map"),
}
IMPLIED = (ImpliedDependency("networks.*.network|uuid", "OS::Neutron::Subnet", "network|network_id"),)
"""A server gets its addresses from any subnet of its networks."""
COLLECTORS = ("ec2",)
"""Collectors that the agents in every server have, besides that of its transport."""
