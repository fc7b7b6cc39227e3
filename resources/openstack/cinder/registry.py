"""The table of the types of the block storage service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .ec2_volumes import Ec2Volume, Ec2VolumeAttachment
from .volume import Volume
from .volume_attachment import VolumeAttachment
from .volume_type import VolumeType


class AwsVolume(Ec2Volume):
    """A volume under the names of CloudFormation."""

    inner = Volume()


class AwsVolumeAttachment(Ec2VolumeAttachment):
    """An attachment under the names of CloudFormation."""

    inner = VolumeAttachment()


RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::EC2::Volume": AwsVolume,
    "AWS::EC2::VolumeAttachment": AwsVolumeAttachment,
    "OS::Cinder::Volume": Volume,
    "OS::Cinder::VolumeAttachment": VolumeAttachment,
    "OS::Cinder::VolumeType": VolumeType,
}
