"""The table of the types of the service for container clusters."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .cluster import Cluster, ClusterTemplate

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Magnum::Cluster": Cluster,
    "OS::Magnum::ClusterTemplate": ClusterTemplate,
}
