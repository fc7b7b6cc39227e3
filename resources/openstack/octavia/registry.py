"""The table of the types of the load balancing service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .balancer import Listener, LoadBalancer
from .elastic_load_balancer import ElasticLoadBalancer
from .flavor import AvailabilityZone, AvailabilityZoneProfile, BalancerFlavor, FlavorProfile
from .l7 import L7Policy, L7Rule
from .pool import HealthMonitor, Pool, PoolMember
from .quota import BalancerQuota

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::ElasticLoadBalancing::LoadBalancer": ElasticLoadBalancer,
    "OS::Octavia::AvailabilityZone": AvailabilityZone,
    "OS::Octavia::AvailabilityZoneProfile": AvailabilityZoneProfile,
    "OS::Octavia::Flavor": BalancerFlavor,
    "OS::Octavia::FlavorProfile": FlavorProfile,
    "OS::Octavia::HealthMonitor": HealthMonitor,
    "OS::Octavia::L7Policy": L7Policy,
    "OS::Octavia::L7Rule": L7Rule,
    "OS::Octavia::Listener": Listener,
    "OS::Octavia::LoadBalancer": LoadBalancer,
    "OS::Octavia::Pool": Pool,
    "OS::Octavia::PoolMember": PoolMember,
    "OS::Octavia::Quota": BalancerQuota,
}
