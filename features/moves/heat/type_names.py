"""Names of types with data of their own in Heat, and of what Heat adds to resources."""

HEAT_HANDLE = "OS::Heat::WaitConditionHandle"
AWS_HANDLES = ("AWS::CloudFormation::WaitConditionHandle", "OS::Heat::UpdateWaitConditionHandle")
HANDLES = (HEAT_HANDLE, *AWS_HANDLES)
POLICIES = ("OS::Heat::ScalingPolicy", "AWS::AutoScaling::ScalingPolicy")
EC2_INSTANCE = "AWS::EC2::Instance"
SERVERS = ("OS::Nova::Server", EC2_INSTANCE)
WORKFLOW = "OS::Mistral::Workflow"
EXTERNAL_RESOURCE = "OS::Mistral::ExternalResource"
ADDED_METADATA = ("deployments", "os-collect-config")
"""Entries that Heat adds to the metadata of servers; Stoker makes its own for each answer."""
