"""The table of the types of the block storage service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .volume import Volume
from .volume_attachment import VolumeAttachment
from .volume_type import VolumeType

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Cinder::Volume": Volume,
    "OS::Cinder::VolumeAttachment": VolumeAttachment,
    "OS::Cinder::VolumeType": VolumeType,
}
