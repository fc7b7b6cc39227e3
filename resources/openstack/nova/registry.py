"""The table of the types of the compute service."""

from collections.abc import Mapping

from ...plugin import ResourceType
from .ec2_instance import Ec2Instance
from .flavor import Flavor
from .host_aggregate import HostAggregate
from .keypair import KeyPair
from .launch_configuration import LaunchConfiguration
from .launch_schema import INSTANCE, LAUNCH_CONFIGURATION
from .launched_groups import AwsAutoScalingGroup, InstanceGroup
from .quota import ComputeQuota
from .server import Server
from .server_group import ServerGroup

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "AWS::AutoScaling::AutoScalingGroup": AwsAutoScalingGroup,
    LAUNCH_CONFIGURATION: LaunchConfiguration,
    INSTANCE: Ec2Instance.of(Server),
    "OS::Heat::InstanceGroup": InstanceGroup,
    "OS::Nova::Flavor": Flavor,
    "OS::Nova::HostAggregate": HostAggregate,
    "OS::Nova::KeyPair": KeyPair,
    "OS::Nova::Quota": ComputeQuota,
    "OS::Nova::Server": Server,
    "OS::Nova::ServerGroup": ServerGroup,
}
