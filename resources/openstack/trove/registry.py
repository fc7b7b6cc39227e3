"""The table of the types of the database service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .cluster import DatabaseCluster
from .instance import DatabaseInstance

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Trove::Cluster": DatabaseCluster,
    "OS::Trove::Instance": DatabaseInstance,
}
