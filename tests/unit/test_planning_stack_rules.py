"""Values that a service would refuse in any case are refused at the request; those that it may take are not.

The words of Neutron and Nova are in the comments where it is not plain that they refuse a value.
"""

import typing

import pytest
import yaml
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import Goal
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits
from stoker.template.errors import TemplateError

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
SUBNET = "s: {{type: OS::Neutron::Subnet, properties: {{network: n, {}}}}}"
GROUP = "g: {{type: OS::Neutron::SecurityGroup, properties: {{rules: [{{{}}}]}}}}"
RULE = "r: {{type: OS::Neutron::SecurityGroupRule, properties: {{security_group: g, {}}}}}"
POOL = "allocation_pools: [{{start: {}, end: {}}}]"
OUTSIDE = "x: {type: OS::Heat::Value, properties: {value: v}}\n"
UNKNOWN = "{get_attr: [x, value]}"
HIDDEN = "{get_param: secret}"


def refusals(resources: str, **goal: Json) -> dict[str, str]:
    """Return the messages of the errors of a template, by their paths; {}: it is accepted."""
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"secret": {"type": "string", "default": "10.9.9.9", "hidden": True}},
        "resources": yaml.safe_load(resources),
    }
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    try:
        GoalCompiler(REGISTRY, Limits()).compile(Goal(template, **goal), Identity("s", "i", "p"), sealer)
    except TemplateError as error:
        return {".".join(map(str, each.path)): each.message for each in (error, *error.others)}
    return {}


def check(resources: str, path: str, words: str) -> None:
    """Check that a template has one error with these words at a path; "": none."""
    errors = refusals(OUTSIDE + resources)
    if not path:
        assert errors == {}
        return
    assert list(errors) == [path]
    assert words in errors[path]


@pytest.mark.parametrize(
    ("properties", "path", "words"),
    [
        ("cidr: 10.0.0.0/24", "", ""),
        ("cidr: '2001:db8::/64'", "cidr", "write ip_version: 6"),
        ("cidr: '2001:db8::/64', ip_version: 6", "", ""),
        # A gateway outside of the range is one of a provider's: Neutron takes it.
        ("cidr: 10.0.0.0/24, gateway_ip: 192.0.2.1", "", ""),
        ("cidr: 10.0.0.0/24, gateway_ip: ''", "", ""),
        ("cidr: 10.0.0.0/24, gateway_ip: 10.0.0.0", "gateway_ip", "use 10.0.0.1 to 10.0.0.254"),
        ("cidr: 10.0.0.0/24, gateway_ip: 10.0.0.255", "gateway_ip", "broadcast address"),
        ("cidr: 10.0.0.0/31, gateway_ip: 10.0.0.1, enable_dhcp: false", "", ""),
        ("cidr: 10.0.0.0/24, gateway_ip: '2001:db8::1'", "gateway_ip", "no address of IPv4"),
        ("cidr: 10.0.0.0/31", "cidr", "enable_dhcp: false"),
        ("cidr: '2001:db8::/126', ip_version: 6", "", ""),
        ("cidr: '2001:db8::/127', ip_version: 6", "cidr", "enable_dhcp: false"),
        ("cidr: 10.0.0.0/24, " + POOL.format("10.0.0.2", "10.0.0.254"), "", ""),
        (
            "cidr: 10.0.0.0/24, " + POOL.format("10.0.1.2", "10.0.1.9"),
            "allocation_pools.0",
            "use 10.0.0.1 to 10.0.0.254",
        ),
        ("cidr: 10.0.0.0/24, " + POOL.format("10.0.0.2", "10.0.0.255"), "allocation_pools.0", "not within"),
        ("cidr: 10.0.0.0/24, " + POOL.format("10.0.0.9", "10.0.0.2"), "allocation_pools.0", "must begin"),
        # The gateway that Neutron gives to a subnet without one is the first address.
        (
            "cidr: 10.0.0.0/24, " + POOL.format("10.0.0.1", "10.0.0.9"),
            "allocation_pools.0",
            "gateway 10.0.0.1",
        ),
        ("cidr: 10.0.0.0/24, gateway_ip: ~, " + POOL.format("10.0.0.1", "10.0.0.9"), "", ""),
        (
            "cidr: 10.0.0.0/24, gateway_ip: 10.0.0.5, " + POOL.format("10.0.0.1", "10.0.0.9"),
            "allocation_pools.0",
            "gateway 10.0.0.5",
        ),
        (f"cidr: 10.0.0.0/24, gateway_ip: {UNKNOWN}, " + POOL.format("10.0.0.1", "10.0.0.9"), "", ""),
        (f"cidr: 10.0.0.0/24, gateway_ip: {HIDDEN}, " + POOL.format("10.0.0.1", "10.0.0.9"), "", ""),
        ("cidr: '2001:db8::/64', ip_version: 6, " + POOL.format("'2001:db8::1'", "'2001:db8::9'"), "", ""),
        (
            "cidr: 10.0.0.0/24, "
            "allocation_pools: [{start: 10.0.0.9, end: 10.0.0.20}, {start: 10.0.0.2, end: 10.0.0.9}]",
            "allocation_pools.0",
            "has addresses of another one",
        ),
        (f"cidr: {UNKNOWN}, " + POOL.format("10.0.1.2", "10.0.1.9"), "", ""),
        ("subnetpool: p, " + POOL.format("10.0.1.2", "10.0.1.9"), "allocation_pools", "need a cidr"),
        ("subnetpool: p, cidr: 10.0.1.0/24, " + POOL.format("10.0.1.2", "10.0.1.9"), "", ""),
        ("cidr: 10.0.0.0/24, gateway_ip: 10.0.0.0, value_specs: {gateway_ip: 10.0.0.1}", "", ""),
        (f"cidr: 10.0.0.0/24, gateway_ip: 10.0.0.0, value_specs: {UNKNOWN}", "", ""),
    ],
)
def test_the_range_of_a_subnet_is_one_that_neutron_takes(properties: str, path: str, words: str) -> None:
    check(SUBNET.format(properties), path and f"resources.s.properties.{path}", words)


@pytest.mark.parametrize(
    ("rule", "path", "words"),
    [
        ("protocol: tcp, port_range_min: 22, port_range_max: 22", "", ""),
        ("protocol: tcp, port_range_min: 23, port_range_max: 22", "port_range_min", "must not be above"),
        ("protocol: tcp, port_range_min: 22", "port_range_min", "for one port write it twice"),
        ("protocol: '17', port_range_max: 22", "port_range_max", "for one port write it twice"),
        ("protocol: icmp, port_range_min: 8", "", ""),
        ("protocol: icmp, port_range_min: 8, port_range_max: 0", "", ""),
        ("protocol: vrrp, port_range_min: 1, port_range_max: 2", "port_range_min", "has no ports"),
        # Neutron takes all ports for any, whatever the protocol is.
        ("protocol: vrrp, port_range_min: 1, port_range_max: 65535", "", ""),
        (f"protocol: {UNKNOWN}, port_range_min: 22, port_range_max: 22", "", ""),
        (f"protocol: tcp, port_range_min: 22, port_range_max: {UNKNOWN}", "", ""),
        ("protocol: tcp, remote_ip_prefix: 10.0.0.0/8", "", ""),
        ("protocol: tcp, remote_ip_prefix: '::/0'", "ethertype", "write ethertype: IPv6"),
        ("protocol: tcp, remote_ip_prefix: '::/0', ethertype: IPv6", "", ""),
        ("protocol: tcp, remote_ip_prefix: 0.0.0.0/0, ethertype: IPv6", "ethertype", "write ethertype: IPv4"),
        (f"protocol: tcp, remote_ip_prefix: {UNKNOWN}, ethertype: IPv6", "", ""),
        (f"protocol: tcp, remote_ip_prefix: '::/0', ethertype: {UNKNOWN}", "", ""),
        ("protocol: icmpv6", "ethertype", "write ethertype: IPv6"),
        # Neutron takes the protocol of IPv4 as that of IPv6.
        ("protocol: icmp, ethertype: IPv6", "", ""),
    ],
)
def test_a_rule_of_a_group_is_one_that_neutron_takes(rule: str, path: str, words: str) -> None:
    check(GROUP.format(rule), path and f"resources.g.properties.rules.0.{path}", words)
    check(RULE.format(rule), path and f"resources.r.properties.{path}", words)
    others = f"direction: {UNKNOWN}, {rule}"
    check(GROUP.format(others), path and f"resources.g.properties.rules.0.{path}", words)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("port_range_min: 22, port_range_max: 22", "port_range_min"),
        ("port_range_min: 1, port_range_max: 65535", ""),
        ("remote_mode: remote_group_id, remote_ip_prefix: '::/0'", ""),
        (f"remote_mode: {UNKNOWN}, remote_ip_prefix: '::/0'", ""),
    ],
)
def test_a_rule_in_a_group_has_no_protocol_of_its_own(rule: str, path: str) -> None:
    check(GROUP.format(rule), path and f"resources.g.properties.rules.0.{path}", "write protocol: tcp")
