"""The table of the types of the key manager."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .container import CertificateContainer, GenericContainer, RSAContainer
from .order import Order
from .secret import Secret

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Barbican::CertificateContainer": CertificateContainer,
    "OS::Barbican::GenericContainer": GenericContainer,
    "OS::Barbican::Order": Order,
    "OS::Barbican::RSAContainer": RSAContainer,
    "OS::Barbican::Secret": Secret,
}
