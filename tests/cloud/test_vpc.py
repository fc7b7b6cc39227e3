"""VPCs and addresses of CloudFormation on a real Neutron, by a stack and step by step."""

import dataclasses
import pathlib
import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.site import Site
from harness.cloud.stacks import Stacks
from stoker.resources.contract.errors import PermanentError

Json = typing.Any
TEMPLATE = pathlib.Path(__file__).parent / "templates" / "vpc.yaml"


@pytest.fixture
def site(project: Project) -> Site:
    return Site(project)


def test_a_server_in_a_vpc_with_an_address(stacks: Stacks, project: Project) -> None:
    network = project.connection.network
    stack = stacks.create("vpc", TEMPLATE.read_text())
    values = stack.outputs()
    assert (values["Private"], values["Zone"]) == ("10.0.2.77", "nova")
    vpc = network.get_network(stack.physical_id("Vpc"))
    [default] = network.routers(name=vpc.name)
    table = network.get_router(stack.physical_id("Table"))
    inner, outer = (stack.physical_id(name) for name in ("Inner", "Outer"))

    def subnets(router: str) -> set[str]:
        return {ip["subnet_id"] for port in network.ports(device_id=router) for ip in port.fixed_ips}

    assert (subnets(default.id) & {inner, outer}, subnets(table.id) & {inner, outer}) == ({inner}, {outer})
    assert table.external_gateway_info["network_id"] == network.find_network("public").id
    [floating_ip] = network.ips(floating_ip_address=values["Address"])
    assert floating_ip.port_id == stack.physical_id("Interface")

    group = network.create_security_group(name="vpc-group")
    stack.update(TEMPLATE.read_text(), parameters={"Groups": group.id})
    assert network.get_port(floating_ip.port_id).security_group_ids == [group.id]
    stack.action("check")
    stack.delete()
    network.delete_security_group(group)
    assert project.leftovers() == {}


def test_a_subnet_returns_to_the_router_of_its_vpc(make: Maker, project: Project) -> None:
    network = project.connection.network
    vpc = make("AWS::EC2::VPC")
    [router] = network.routers(name=network.get_network(vpc.id).name)
    subnet = make("AWS::EC2::Subnet", VpcId=vpc.id, CidrBlock="10.9.0.0/24")
    table = make("AWS::EC2::RouteTable", VpcId=vpc.id)

    def owners() -> set[str]:
        ports = network.ports(network_id=vpc.id)
        return {port.device_id for port in ports if port.device_owner == "network:router_interface"}

    assert owners() == {router.id}
    association = make("AWS::EC2::SubnetRouteTableAssociation", RouteTableId=table.id, SubnetId=subnet.id)
    assert owners() == {table.id}
    association.act("check")
    association.delete()
    assert owners() == {router.id}
    for driven in (table, subnet, vpc):
        driven.act("check")
        driven.delete()
        driven.delete()
    assert project.leftovers() == {}


def test_a_lost_step_of_a_vpc_makes_no_second_router(make: Maker, project: Project) -> None:
    network = project.connection.network
    vpc = make("AWS::EC2::VPC")
    vpc.plugin.after_create(vpc.target, vpc.context)
    subnet = make("AWS::EC2::Subnet", VpcId=vpc.id, CidrBlock="10.9.0.0/24")
    subnet.plugin.after_create(subnet.target, subnet.context)
    assert len(list(network.routers())) == 1
    subnet.delete()
    vpc.delete()
    assert project.leftovers() == {}


def test_a_gateway_is_that_of_the_route_tables_of_its_stack(make: Maker, project: Project) -> None:
    network = project.connection.network
    vpc = make("AWS::EC2::VPC")
    table, foreign = (make("AWS::EC2::RouteTable", VpcId=vpc.id) for _ in range(2))
    attachment = make.new("AWS::EC2::VPCGatewayAttachment", VpcId=vpc.id)
    attachment.target = dataclasses.replace(attachment.target, stack=table.target.stack)
    attachment.create()
    assert network.get_router(table.id).external_gateway_info
    assert not network.get_router(foreign.id).external_gateway_info
    attachment.act("check")
    attachment.delete()
    assert not network.get_router(table.id).external_gateway_info
    with pytest.raises(PermanentError, match="has no gateway"):
        attachment.act("check")


def test_addresses_of_servers(make: Maker, site: Site, project: Project) -> None:
    network = project.connection.network
    router = network.create_router(external_gateway_info={"network_id": network.find_network("public").id})
    network.add_interface_to_router(router, subnet_id=network.find_subnet("net-subnet").id)
    server = site.server().create()
    address = make("AWS::EC2::EIP", InstanceId=server.id)
    [port] = network.ports(device_id=server.id)
    assert network.get_ip(address.id).port_id == port.id
    assert address.update(InstanceId=None) == "updated"
    assert network.get_ip(address.id).port_id is None
    ip = network.get_ip(address.id).floating_ip_address
    association = make("AWS::EC2::EIPAssociation", EIP=ip, InstanceId=server.id)
    assert network.get_ip(address.id).port_id == port.id
    association.act("check")
    other = make("AWS::EC2::EIP")
    assert association.update(EIP=other.plugin.reference_id(other.target)) == "updated"
    assert (network.get_ip(address.id).port_id, network.get_ip(other.id).port_id) == (None, port.id)
    association.delete()
    assert network.get_ip(other.id).port_id is None
    for driven in (address, other):
        driven.delete()
        driven.delete()
