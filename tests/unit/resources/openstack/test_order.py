"""The order of a cloud's resources that no reference gives, as Heat's ``add_dependencies`` has it."""

import typing

import pytest
import yaml
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits
from stoker.template.language import CompiledTemplate

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
STACK = """
net: {type: OS::Neutron::Net}
out: {type: OS::Neutron::ProviderNet, properties: {network_type: local}}
a: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.0.1.0/24}}
b: {type: OS::Neutron::Subnet, properties: {network_id: {get_resource: net}, cidr: 10.0.2.0/24}}
x: {type: OS::Neutron::Subnet, properties: {network: {get_resource: out}, cidr: 10.0.3.0/24}}
port: {type: OS::Neutron::Port, properties: {network: {get_resource: net}}}
old: {type: OS::Neutron::Port, properties: {network_id: {get_resource: net}}}
placed:
  type: OS::Neutron::Port
  properties: {network: {get_resource: net}, fixed_ips: [{subnet_id: {get_resource: b}}]}
server:
  type: OS::Nova::Server
  properties: {flavor: f, image: i, networks: [{port: {get_resource: port}}, {network: {get_resource: net}}]}
ported: {type: OS::Nova::Server, properties: {flavor: f, image: i, networks: [{port: {get_resource: port}}]}}
router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: {get_resource: out}}}}
way:
  type: OS::Neutron::RouterInterface
  properties: {router_id: {get_resource: router}, subnet_id: {get_resource: a}}
door:
  type: OS::Neutron::RouterInterface
  properties: {router: {get_resource: router}, port: {get_resource: placed}}
free: {type: OS::Neutron::FloatingIP, properties: {floating_network: {get_resource: out}}}
address:
  type: OS::Neutron::FloatingIP
  properties: {floating_network_id: {get_resource: out}, port_id: {get_resource: port}}
tie:
  type: OS::Neutron::FloatingIPAssociation
  properties: {floatingip_id: {get_resource: free}, port_id: {get_resource: old}}
"""
IMPLIED = {
    "port": {"a", "b"},
    "old": {"a", "b"},
    "placed": {"a"},
    "server": {"a", "b"},
    "router": {"x"},
    "free": {"router", "x"},
    "address": {"router", "x", "way", "door"},
    "tie": {"way", "door"},
}
"""The resources that each waits for besides those that it refers to.

Heat lets `ported` wait for all subnets of the stack, `tie` only for interfaces in the subnets of its port's
fixed_ips, and no floating IP for `x`.
"""


def compiled(outputs: Json = None) -> CompiledTemplate:
    template = {
        "heat_template_version": "2018-08-31",
        "resources": yaml.safe_load(STACK),
        "outputs": outputs or {},
    }
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    return GoalCompiler(REGISTRY, Limits()).compile(Goal(template), Identity("s", "i", "p"), sealer).plan


def test_resources_wait_for_what_they_need_without_a_reference() -> None:
    required = {}
    for name, item in compiled().resources.items():
        implied = set(item.requires) - {reference.resource for reference in item.references}
        if implied:
            required[name] = implied
    assert required == IMPLIED


@pytest.mark.parametrize(
    ("name", "attribute", "again"),
    [
        ("server", "first_address", True),
        ("server", "networks", True),
        ("server", "show", True),
        ("server", "name", False),
        ("free", "port_id", True),
        ("free", "fixed_ip_address", True),
        ("free", "floating_ip_address", False),
        ("net", "subnets", True),
        ("port", "device_id", True),
        ("port", "mac_address", False),
    ],
)
def test_outputs_show_what_other_resources_change_as_it_is_in_the_end(
    name: str, attribute: str, again: bool
) -> None:
    plan = compiled({"o": {"value": {"get_attr": [name, attribute]}}})
    assert plan.refreshed == ((name,) if again else ())
