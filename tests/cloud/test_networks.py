"""Stacks of networks on a real Neutron, from the request to the things and back to nothing."""

import typing

import pytest
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks

Json = typing.Any
NETWORKS: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "net": {"type": "OS::Neutron::Net", "properties": {"tags": ["blue"]}},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network_id": {"get_resource": "net"}, "cidr": "10.20.0.0/24"},
        },
        "router": {
            "type": "OS::Neutron::Router",
            "properties": {"external_gateway_info": {"network": "public"}},
        },
        "interface": {
            "type": "OS::Neutron::RouterInterface",
            "properties": {"router": {"get_resource": "router"}, "subnet": {"get_resource": "subnet"}},
        },
        "group": {
            "type": "OS::Neutron::SecurityGroup",
            "properties": {
                "description": "web",
                "rules": [{"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}],
            },
        },
        "port": {
            "type": "OS::Neutron::Port",
            "properties": {
                "network": {"get_resource": "net"},
                "security_groups": [{"get_resource": "group"}],
                "fixed_ips": [{"subnet": {"get_resource": "subnet"}, "ip_address": "10.20.0.77"}],
            },
        },
        "address": {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}},
        "association": {
            "type": "OS::Neutron::FloatingIPAssociation",
            "properties": {
                "floatingip_id": {"get_resource": "address"},
                "port_id": {"get_resource": "port"},
            },
        },
    },
    "outputs": {
        "fixed": {"value": {"get_attr": ["port", "fixed_ips", 0, "ip_address"]}},
        "public": {"value": {"get_attr": ["address", "floating_ip_address"]}},
        "port of the address": {"value": {"get_attr": ["address", "port_id"]}},
        "range": {"value": {"get_attr": ["port", "subnets", 0, "cidr"]}},
        "network": {"value": {"get_attr": ["port", "network", "name"]}},
    },
}


@pytest.mark.commit
@pytest.mark.usefixtures("cloud")
def test_a_network_with_all_that_belongs_to_it(stacks: Stacks, project: Project) -> None:
    stack = stacks.create("web", NETWORKS)
    network = project.connection.network
    port = network.get_port(stack.physical_id("port"))
    assert [item["ip_address"] for item in port.fixed_ips] == ["10.20.0.77"]
    assert port.security_group_ids == [stack.physical_id("group")]
    (router_port,) = network.ports(device_id=stack.physical_id("router"), project_id=project.id)
    assert router_port.fixed_ips[0]["subnet_id"] == stack.physical_id("subnet")
    address = network.get_ip(stack.physical_id("address"))
    assert address.port_id == port.id
    assert stack.outputs()["fixed"] == "10.20.0.77"
    assert stack.outputs()["public"] == address.floating_ip_address
    assert stack.outputs()["port of the address"] == port.id
    assert stack.outputs()["range"] == "10.20.0.0/24"
    assert stack.outputs()["network"] == network.get_network(port.network_id).name
    group = network.get_security_group(stack.physical_id("group"))
    assert group.description == "web"
    assert {rule["port_range_max"] for rule in group.security_group_rules} == {80, None}

    changed = {**NETWORKS, "resources": {**NETWORKS["resources"]}}
    changed["resources"]["port"] = {
        **NETWORKS["resources"]["port"],
        "properties": {**NETWORKS["resources"]["port"]["properties"], "name": "door"},
    }
    del changed["resources"]["association"]
    stack.update(changed)
    assert network.get_port(port.id).name == "door"
    assert network.get_ip(address.id).port_id is None
    assert stack.outputs()["port of the address"] is None

    stack.delete()
    assert project.leftovers() == {}


def test_a_wrong_range_says_what_the_service_says(stacks: Stacks, project: Project) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {
            "net": {"type": "OS::Neutron::Net"},
            "one": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "net"}, "cidr": "10.20.0.0/24"},
            },
            "same": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "net"}, "cidr": {"get_attr": ["range", "value"]}},
                "depends_on": "one",
            },
            # The request knows no attribute, so the service has to find out.
            "range": {"type": "OS::Heat::Value", "properties": {"value": "10.20.0.0/24"}},
        },
    }
    stack = stacks.start("overlap", template)
    stack.wait("CREATE_FAILED")
    reason = stack.reasons()["same"]
    assert "network 400" in reason
    assert "overlaps" in reason
    assert "[req-" in reason
    stack.delete()
    assert project.leftovers() == {}


def test_a_network_that_was_made_again_under_its_name_is_found(stacks: Stacks, project: Project) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {
            "subnet": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": "renewed", "cidr": "10.33.0.0/24"},
            }
        },
    }
    network = project.connection.network
    for number in range(2):
        renewed = network.create_network(name="renewed")
        # The conductor knows for a minute which id the name had before.
        stack = stacks.create(f"s{number}", template)
        assert network.get_subnet(stack.physical_id("subnet")).network_id == renewed.id
        stack.delete()
        network.delete_network(renewed)
