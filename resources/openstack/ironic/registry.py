"""The table of the types of the bare metal service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .port import BareMetalPort

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Ironic::Port": BareMetalPort,
}
