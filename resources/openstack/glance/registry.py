"""The table of the types of the image service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .image import Image, WebImage

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Glance::Image": Image,
    "OS::Glance::WebImage": WebImage,
}
