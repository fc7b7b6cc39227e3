"""The table of the types of the container service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .container import Container

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Zun::Container": Container,
}
