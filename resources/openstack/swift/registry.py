"""The table of the types of the object storage service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .container import Bucket, SwiftContainer
from .signals import SwiftSignal, SwiftSignalHandle

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::S3::Bucket": Bucket,
    "OS::Heat::SwiftSignal": SwiftSignal,
    "OS::Heat::SwiftSignalHandle": SwiftSignalHandle,
    "OS::Swift::Container": SwiftContainer,
}
