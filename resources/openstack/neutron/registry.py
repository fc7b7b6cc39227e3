"""The table of the types of the network service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .net import Net
from .subnet import Subnet

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Neutron::Net": Net,
    "OS::Neutron::Subnet": Subnet,
}
