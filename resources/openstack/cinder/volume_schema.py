"""The properties and attributes of OS::Cinder::Volume."""

from collections.abc import Mapping

from ....template.constraints import Custom, Length, Range
from ...contract import Attribute, Property, SupportStatus

HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")

PROPERTIES: Mapping[str, Property] = {
    "availability_zone": Property("string", "Availability zone; if omitted, chosen by the service."),
    "size": Property(
        "integer",
        "Size, in GiB, which an update can only increase; optional with a snapshot, backup or source volume.",
        update_allowed=True,
        constraints=(Range(minimum=1),),
    ),
    "snapshot_id": Property(
        "string",
        "Name or id of the snapshot that the volume is created from.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "backup_id": Property(
        "string",
        "Name or id of the backup that the volume is restored from; an update restores another backup.",
        update_allowed=True,
        constraints=(Custom(check_name="cinder.backup"),),
    ),
    "name": Property(
        "string",
        "Name; if omitted, generated from the names of the stack and the resource.",
        update_allowed=True,
        constraints=(Length(maximum=255),),
    ),
    "description": Property("string", "Description of the volume.", update_allowed=True),
    "volume_type": Property(
        "string",
        "Name or id of the volume type.",
        update_allowed=True,
        constraints=(Custom(check_name="cinder.vtype"),),
    ),
    "metadata": Property("map", "Metadata.", default={}, update_allowed=True),
    "imageRef": Property("string", "Old name of image.", support_status=HIDDEN, alias_of="image"),
    "image": Property(
        "string",
        "Name or id of the image that the volume is created from.",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "source_volid": Property(
        "string",
        "Name or id of the source volume to clone.",
        constraints=(Custom(check_name="cinder.volume"),),
    ),
    "scheduler_hints": Property("map", "Scheduler hints."),
    "read_only": Property("boolean", "Read-only access.", update_allowed=True),
    "multiattach": Property(
        "boolean",
        "Multi-attach; without effect, because the volume type decides.",
        default=False,
        support_status=SupportStatus("HIDDEN"),
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "availability_zone": Attribute("Availability zone.", "string"),
    "size": Attribute("Size, in GiB.", "string"),
    "snapshot_id": Attribute("Id of the snapshot that the volume was created from.", "string"),
    "display_name": Attribute("Name.", "string"),
    "display_description": Attribute("Description.", "string"),
    "volume_type": Attribute("Volume type.", "string"),
    "metadata": Attribute("Metadata, as JSON text.", "string"),
    "source_volid": Attribute("Id of the source volume.", "string"),
    "status": Attribute("Status.", "string", volatile=True),
    "created_at": Attribute("Time of creation.", "string"),
    "bootable": Attribute("Bootable: true if a server can boot from the volume.", "string"),
    "metadata_values": Attribute("Metadata.", "map"),
    "encrypted": Attribute("Encryption: true if the volume is encrypted.", "string"),
    "attachments": Attribute(
        "Attachments, as text.",
        "string",
        support_status=SupportStatus("DEPRECATED", message="Use attachments_list."),
        volatile=True,
    ),
    "attachments_list": Attribute("Attachments.", "list", volatile=True),
    "multiattach": Attribute(
        "Multi-attach: true if several servers can attach the volume at once.", "boolean"
    ),
    "show": Attribute("All fields, as the service's API returns them.", "map"),
}
