"""The table of the types of the service for shared file systems."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .security_service import SecurityService
from .share import ManilaShare
from .share_network import ShareNetwork
from .share_type import ShareType

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Manila::SecurityService": SecurityService,
    "OS::Manila::Share": ManilaShare,
    "OS::Manila::ShareNetwork": ShareNetwork,
    "OS::Manila::ShareType": ShareType,
}
