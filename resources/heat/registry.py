"""The table of Heat's own types.

A new type takes a module in this folder, its import here, and its line in the table.
"""

from collections.abc import Mapping

from ..plugin import ResourceType
from .autoscaling_group import AutoScalingGroup
from .delay import Delay
from .deployed_server import DeployedServer
from .iam import ACCESS_KEY, USER, AccessKey, IamUser
from .none import NoneResource
from .random_string import RandomString
from .resource_chain import ResourceChain
from .resource_group import ResourceGroup
from .scaling_policy import AwsScalingPolicy, ScalingPolicy
from .software_groups import SOFTWARE_TYPES
from .stack import AwsStack, StackResource
from .test_resource import TestResource
from .value import Value
from .wait_conditions import AwsWaitCondition, WaitCondition
from .wait_handles import AwsWaitConditionHandle, UpdateWaitConditionHandle, WaitConditionHandle

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    **SOFTWARE_TYPES,
    "AWS::AutoScaling::ScalingPolicy": AwsScalingPolicy,
    "AWS::CloudFormation::Stack": AwsStack,
    "AWS::CloudFormation::WaitCondition": AwsWaitCondition,
    "AWS::CloudFormation::WaitConditionHandle": AwsWaitConditionHandle,
    ACCESS_KEY: AccessKey,
    USER: IamUser,
    "OS::Heat::AutoScalingGroup": AutoScalingGroup,
    "OS::Heat::Delay": Delay,
    "OS::Heat::DeployedServer": DeployedServer,
    "OS::Heat::None": NoneResource,
    "OS::Heat::RandomString": RandomString,
    "OS::Heat::ResourceChain": ResourceChain,
    "OS::Heat::ResourceGroup": ResourceGroup,
    "OS::Heat::ScalingPolicy": ScalingPolicy,
    "OS::Heat::Stack": StackResource,
    "OS::Heat::TestResource": TestResource,
    "OS::Heat::UpdateWaitConditionHandle": UpdateWaitConditionHandle,
    "OS::Heat::Value": Value,
    "OS::Heat::WaitCondition": WaitCondition,
    "OS::Heat::WaitConditionHandle": WaitConditionHandle,
}
