"""The table of the types of the reservation service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .host import Host
from .lease import Lease

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Blazar::Host": Host,
    "OS::Blazar::Lease": Lease,
}
