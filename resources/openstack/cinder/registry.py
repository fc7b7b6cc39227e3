"""The table of the types of the block storage service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .ec2_volumes import Ec2Volume, Ec2VolumeAttachment
from .encryption import EncryptedVolumeType
from .qos import QoSAssociation, QoSSpecs
from .quota import VolumeQuota
from .volume import Volume
from .volume_attachment import VolumeAttachment
from .volume_type import VolumeType

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::EC2::Volume": Ec2Volume.of(Volume),
    "AWS::EC2::VolumeAttachment": Ec2VolumeAttachment.of(VolumeAttachment),
    "OS::Cinder::EncryptedVolumeType": EncryptedVolumeType,
    "OS::Cinder::QoSAssociation": QoSAssociation,
    "OS::Cinder::QoSSpecs": QoSSpecs,
    "OS::Cinder::Quota": VolumeQuota,
    "OS::Cinder::Volume": Volume,
    "OS::Cinder::VolumeAttachment": VolumeAttachment,
    "OS::Cinder::VolumeType": VolumeType,
}
