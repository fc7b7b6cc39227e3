"""A load balancer of CloudFormation's on a real Octavia, in front of real servers."""

import typing

import pytest
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks

Json = typing.Any
pytestmark = pytest.mark.usefixtures("balancers")


def template(*servers: str) -> Json:
    """A balancer for some of two servers."""
    instance = {"ImageId": "cirros", "InstanceType": "m1.tiny", "SubnetId": {"Ref": "Subnet"}}
    check = {"Target": "HTTP:80/", "Interval": "10", "Timeout": "5"}
    check |= {"HealthyThreshold": "3", "UnhealthyThreshold": "3"}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Vpc": {"Type": "AWS::EC2::VPC"},
            "Subnet": {
                "Type": "AWS::EC2::Subnet",
                "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.42.0.0/24"},
            },
            "One": {"Type": "AWS::EC2::Instance", "Properties": instance},
            "Two": {"Type": "AWS::EC2::Instance", "Properties": instance},
            "Balancer": {
                "Type": "AWS::ElasticLoadBalancing::LoadBalancer",
                "Properties": {
                    "AvailabilityZones": ["nova"],
                    "Instances": [{"Ref": name} for name in servers],
                    "Listeners": [{"LoadBalancerPort": 80, "InstancePort": 80, "Protocol": "HTTP"}],
                    "HealthCheck": check,
                },
            },
        },
        "Outputs": {"Address": {"Value": {"Fn::GetAtt": ["Balancer", "DNSName"]}}},
    }


def test_servers_are_balanced(stacks: Stacks, project: Project) -> None:
    api = project.connection.load_balancer
    stack = stacks.create("shop", template("One"))
    [balancer] = api.load_balancers()
    assert stack.outputs()["Address"] == balancer.vip_address
    assert balancer.vip_subnet_id == stack.physical_id("Subnet")
    [pool] = api.pools()
    [monitor] = api.health_monitors()
    assert (pool.protocol, monitor.type, monitor.delay) == ("HTTP", "HTTP", 10)

    def members() -> set[str]:
        return {member.address for member in api.members(pool)}

    addresses = {
        port.device_id: port.fixed_ips[0]["ip_address"]
        for port in project.connection.network.ports(network_id=stack.physical_id("Vpc"))
    }
    assert members() == {addresses[stack.physical_id("One")]}
    stack.update(template("One", "Two"))
    assert members() == {addresses[stack.physical_id(name)] for name in ("One", "Two")}
    stack.update(template("Two"))
    assert members() == {addresses[stack.physical_id("Two")]}
    stack.delete()
    assert project.leftovers() == {}
