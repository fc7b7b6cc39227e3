"""The properties and attributes of OS::Cinder::Volume."""

from collections.abc import Mapping

from ....template.constraints import Custom, Range
from ...schema import Attribute, Property, SupportStatus

HIDDEN = SupportStatus("HIDDEN", message="Use the property that has taken its place.")

PROPERTIES: Mapping[str, Property] = {
    "availability_zone": Property("string", "Availability zone; none: the service chooses."),
    "size": Property(
        "integer",
        "Size in GiB; it can grow only. It follows from a snapshot, a backup or another volume.",
        update_allowed=True,
        constraints=(Range(minimum=1),),
    ),
    "snapshot_id": Property(
        "string",
        "Name or id of the snapshot that it begins with.",
        constraints=(Custom(check_name="cinder.snapshot"),),
    ),
    "backup_id": Property(
        "string",
        "Name or id of the backup that it begins with; a change restores another one.",
        update_allowed=True,
        constraints=(Custom(check_name="cinder.backup"),),
    ),
    "name": Property("string", "Name; none: made of the stack's and the resource's.", update_allowed=True),
    "description": Property("string", "Description of the volume.", update_allowed=True),
    "volume_type": Property(
        "string",
        "Name or id of its type; a change retypes it.",
        update_allowed=True,
        constraints=(Custom(check_name="cinder.vtype"),),
    ),
    "metadata": Property("map", "Its metadata.", default={}, update_allowed=True),
    "imageRef": Property("string", "The old name of image.", support_status=HIDDEN, alias_of="image"),
    "image": Property(
        "string",
        "Name or id of the image that it begins with.",
        constraints=(Custom(check_name="glance.image"),),
    ),
    "source_volid": Property(
        "string",
        "Name or id of the volume that it is a copy of.",
        constraints=(Custom(check_name="cinder.volume"),),
    ),
    "scheduler_hints": Property("map", "Hints for the scheduler."),
    "read_only": Property("boolean", "It cannot be written to.", update_allowed=True),
    "multiattach": Property(
        "boolean",
        "Without effect: its type decides.",
        default=False,
        support_status=SupportStatus("HIDDEN"),
    ),
}
ATTRIBUTES: Mapping[str, Attribute] = {
    "availability_zone": Attribute("Its availability zone.", "string"),
    "size": Attribute("Its size in GiB.", "string"),
    "snapshot_id": Attribute("The snapshot that it began with.", "string"),
    "display_name": Attribute("Its name.", "string"),
    "display_description": Attribute("Its description.", "string"),
    "volume_type": Attribute("Its type.", "string"),
    "metadata": Attribute("Its metadata, as JSON text.", "string"),
    "source_volid": Attribute("The volume that it is a copy of.", "string"),
    "status": Attribute("Its status.", "string", volatile=True),
    "created_at": Attribute("The moment of its creation.", "string"),
    "bootable": Attribute("A server can be started from it.", "string"),
    "metadata_values": Attribute("Its metadata.", "map"),
    "encrypted": Attribute("It is encrypted.", "string"),
    "attachments": Attribute(
        "Its attachments, as text.",
        "string",
        support_status=SupportStatus("DEPRECATED", message="Use attachments_list."),
        volatile=True,
    ),
    "attachments_list": Attribute("Its attachments.", "list", volatile=True),
    "multiattach": Attribute("Several servers can have it at once.", "boolean"),
    "show": Attribute("All that the service reports of it.", "map"),
}
