"""AWS::EC2::Volume and AWS::EC2::VolumeAttachment: volumes under the names of CloudFormation."""

from ....shapes import JsonMap
from ....template.constraints import AllowedPattern, Custom, Range
from ...contract import Property, PropertyError, SupportStatus
from ..translated import TranslatedType, pairs, tags, unless_empty
from .volume import Volume
from .volume_attachment import VolumeAttachment

OLD = SupportStatus(version="2014.1")


class Ec2Volume(TranslatedType):
    """A volume; its inner type is OS::Cinder::Volume."""

    type_name = "AWS::EC2::Volume"
    inner = Volume()
    description = "A volume, under the names of CloudFormation."
    support_status = OLD
    service = "block-storage"
    identity = "the entry ``stoker`` of its metadata"
    properties_schema = {
        "AvailabilityZone": Property("string", "Availability zone.", required=True, immutable=True),
        "Size": Property("integer", "Size, in GiB.", immutable=True, constraints=(Range(minimum=1),)),
        "SnapshotId": Property(
            "string",
            "Name or id of the backup that the volume is restored from.",
            immutable=True,
            constraints=(Custom(check_name="cinder.backup"),),
        ),
        "Tags": pairs("Metadata of the volume.", immutable=True),
    }
    translation = {
        "availability_zone": unless_empty("AvailabilityZone"),
        "size": "Size",
        "backup_id": unless_empty("SnapshotId"),
        "metadata": tags,
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that the size is known."""
        if not properties.get("Size", "unknown") and not properties.get("SnapshotId", "unknown"):
            raise PropertyError("Size is needed, unless SnapshotId is given", ("Size",))


class Ec2VolumeAttachment(TranslatedType):
    """An attachment; its inner type is OS::Cinder::VolumeAttachment."""

    type_name = "AWS::EC2::VolumeAttachment"
    inner = VolumeAttachment()
    description = "The attachment of a volume to a server, under the names of CloudFormation."
    support_status = OLD
    service = "block-storage"
    identity = "the server and the volume"
    properties_schema = {
        "InstanceId": Property(
            "string",
            "Name or id of the server.",
            required=True,
            immutable=True,
            constraints=(Custom(check_name="nova.server"),),
        ),
        "VolumeId": Property(
            "string",
            "Name or id of the volume.",
            required=True,
            immutable=True,
            constraints=(Custom(check_name="cinder.volume"),),
        ),
        "Device": Property(
            "string",
            "Device name in the server; some hypervisors ignore it.",
            required=True,
            immutable=True,
            constraints=(AllowedPattern(pattern="/dev/vd[b-z]"),),
        ),
    }
    translation = {"instance_uuid": "InstanceId", "volume_id": "VolumeId", "mountpoint": "Device"}
