"""Values that a service would refuse in any case are refused at the request; those that it may take are not.

The words of Neutron and Nova are in the comments where it is not plain that they refuse a value.
"""

import typing

import pytest
import yaml
from stoker.engine.compile import GoalCompiler
from stoker.engine.planning.requests import CREATED, PREVIEWED, Goal, Purpose, Validated
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
        ("cidr: 10.0.0.0/24, gateway_ip: '2001:db8::1'", "gateway_ip", "not an address of IPv4"),
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


NETWORK = """
n: {type: OS::Neutron::Net}
s: {type: OS::Neutron::Subnet, properties: {network: {get_resource: n}, cidr: 10.0.0.0/24}}
"""
OTHER = "t: {{type: OS::Neutron::Subnet, properties: {{network: {{get_resource: n}}, {}}}}}\n"
PORT = "{}: {{type: OS::Neutron::Port, properties: {{network: {{get_resource: n}}, {}}}}}\n"
ADDRESS = "fixed_ips: [{{subnet: {{get_resource: s}}, ip_address: {}}}]"
SERVER = "v: {{type: OS::Nova::Server, properties: {{image: i, flavor: f, networks: [{{{}}}]}}}}\n"
FLOATING = "f: {{type: OS::Neutron::FloatingIP, properties: {{floating_network: n, {}}}}}\n"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (OTHER.format("cidr: 10.0.1.0/24"), ""),
        (OTHER.format("cidr: 10.0.0.128/25"), "overlaps with 10.0.0.0/24 of s"),
        (OTHER.format("cidr: 10.0.0.128/25").replace("network:", "network_id:"), "another network"),
        (OTHER.format("cidr: 10.0.0.0/24").replace("{get_resource: n}", "n"), ""),
        (OTHER.format("cidr: 10.0.0.0/24").replace("{get_resource: n}", UNKNOWN), ""),
        (OTHER.format(f"cidr: {UNKNOWN}"), ""),
        (OTHER.format("cidr: 10.0.0.0/24, value_specs: {cidr: 10.0.1.0/24}"), ""),
        (OTHER.format("cidr: '2001:db8::/64', ip_version: 6"), ""),
    ],
)
def test_the_subnets_of_a_network_do_not_overlap(other: str, words: str) -> None:
    check(NETWORK + other, words and "resources.t.properties.cidr", words)


def test_the_subnets_of_a_network_outside_do_not_overlap() -> None:
    subnets = (NETWORK + OTHER.format("cidr: 10.0.0.0/16")).replace("{get_resource: n}", "public")
    check(subnets, "resources.t.properties.cidr", "overlaps with 10.0.0.0/24 of s")


@pytest.mark.parametrize(
    ("user", "path", "words"),
    [
        (PORT.format("p", ADDRESS.format("10.0.0.9")), "", ""),
        # Pools are for addresses that Neutron chooses: one outside of them can be asked for.
        (
            PORT.format("p", ADDRESS.format("10.0.1.9")),
            "p.properties.fixed_ips.0.ip_address",
            "use 10.0.0.1 to 10.0.0.254",
        ),
        (
            PORT.format("p", ADDRESS.format("10.0.0.255")),
            "p.properties.fixed_ips.0.ip_address",
            "not an address of the subnet s (10.0.0.0/24)",
        ),
        (PORT.format("p", ADDRESS.format(UNKNOWN)), "", ""),
        (PORT.format("p", ADDRESS.format(HIDDEN)), "", ""),
        (PORT.format("p", "fixed_ips: [{subnet: s, ip_address: 10.0.1.9}]"), "", ""),
        (PORT.format("p", ADDRESS.format("10.0.1.9") + ", value_specs: {fixed_ips: []}"), "", ""),
        (
            PORT.format("p", ADDRESS.format("10.0.0.9")).replace("{get_resource: n}", "{get_resource: m}")
            + "m: {type: OS::Neutron::Net}\n",
            "p.properties.fixed_ips.0.subnet",
            "s is a subnet of n, but the port is in m",
        ),
        (SERVER.format("subnet: {get_resource: s}, fixed_ip: 10.0.0.9"), "", ""),
        (
            SERVER.format("subnet: {get_resource: s}, fixed_ip: 10.0.1.9"),
            "v.properties.networks.0.fixed_ip",
            "use 10.0.0.1",
        ),
        (
            FLOATING.format("floating_subnet: {get_resource: s}, floating_ip_address: 10.0.1.9"),
            "f.properties.floating_ip_address",
            "use 10.0.0.1",
        ),
        (
            "r: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: n, "
            "external_fixed_ips: [{subnet: {get_resource: s}, ip_address: 10.0.1.9}]}}}",
            "r.properties.external_gateway_info.external_fixed_ips.0.ip_address",
            "use 10.0.0.1",
        ),
    ],
)
def test_an_address_is_one_of_the_subnet_beside_it(user: str, path: str, words: str) -> None:
    check(NETWORK + user, path and f"resources.{path}", words)


def test_an_address_of_a_subnet_that_exists_is_not_judged() -> None:
    external = NETWORK.replace("cidr:", "cidr: 10.0.0.0/24}, external_id: 1f, metadata: {x:")
    check(external + PORT.format("p", ADDRESS.format("10.0.1.9")), "", "")


P = PORT.format("p", ADDRESS.format("10.0.0.9"))
MAC = PORT.format("p", "mac_address: 'fa:16:3e:00:00:01'")
FIRST = "resources.p.properties.fixed_ips.0.ip_address"


@pytest.mark.parametrize(
    ("users", "path", "words"),
    [
        (P + PORT.format("q", ADDRESS.format("10.0.0.8")), "", ""),
        (P + PORT.format("q", ADDRESS.format("10.0.0.9")), "q.properties.fixed_ips.0.ip_address", FIRST),
        (
            P + PORT.format("a", "fixed_ips: [{ip_address: 10.0.0.9}]"),
            "p.properties.fixed_ips.0.ip_address",
            "resources.a.properties.fixed_ips.0.ip_address",
        ),
        (
            P + SERVER.format("subnet: {get_resource: s}, fixed_ip: 10.0.0.9"),
            "v.properties.networks.0.fixed_ip",
            FIRST,
        ),
        (
            PORT.format("p", "fixed_ips: [{ip_address: 10.0.0.9}, {ip_address: 10.0.0.9}]"),
            "p.properties.fixed_ips.1.ip_address",
            FIRST,
        ),
        # Nobody knows whether the network with the name n is another one.
        (
            P + PORT.format("q", "fixed_ips: [{ip_address: 10.0.0.9}]").replace("{get_resource: n}", "n"),
            "",
            "",
        ),
        (
            PORT.format("p", "allowed_address_pairs: [{ip_address: 10.0.0.9}]")
            + PORT.format("q", "allowed_address_pairs: [{ip_address: 10.0.0.9}]"),
            "",
            "",
        ),
        (MAC + PORT.format("q", "mac_address: 'fa:16:3e:00:00:02'"), "", ""),
        (
            MAC + PORT.format("q", "mac_address: FA-16-3E-0-0-1"),
            "q.properties.mac_address",
            "p.properties.mac",
        ),
        (MAC + MAC.replace("p:", "q:", 1).replace("{get_resource: n}", "n"), "", ""),
        (
            MAC
            + SERVER.format(
                "network: {get_resource: n}, port_extra_properties: {mac_address: 'fa:16:3e:00:00:01'}"
            ),
            "v.properties.networks.0.port_extra_properties.mac_address",
            "p.properties.mac_address",
        ),
    ],
)
def test_an_address_is_of_one_resource_of_a_network(users: str, path: str, words: str) -> None:
    check(NETWORK + users, path and f"resources.{path}", words)


def test_rules_hold_inside_of_nested_stacks() -> None:
    inner = {"heat_template_version": "2018-08-31", "parameters": {"net": {"type": "string"}}} | {
        "resources": yaml.safe_load(
            "s: {type: OS::Neutron::Subnet, properties: {network: {get_param: net}, cidr: 10.0.0.0/24}}\n"
            "p: {type: OS::Neutron::Port, properties: {network: {get_param: net},"
            " fixed_ips: [{subnet: {get_resource: s}, ip_address: 10.0.1.9}]}}"
        )
    }
    nested = "n: {type: OS::Neutron::Net}\nc: {type: inner.yaml, properties: {net: {get_resource: n}}}"
    errors = refusals(nested, files={"inner.yaml": yaml.safe_dump(inner)})
    [path] = errors
    assert path.startswith("resources.c.")
    assert path.endswith("resources.p.properties.fixed_ips.0.ip_address")


def test_a_resource_that_may_be_absent_is_not_judged() -> None:
    ports = PORT.format("p", ADDRESS.format("10.0.0.9")) + PORT.format("q", ADDRESS.format("10.0.0.9"))
    resources = yaml.safe_load(NETWORK + ports)
    resources["q"]["condition"] = "wanted"
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"on": {"type": "boolean"}},
        "conditions": {"wanted": {"get_param": "on"}},
        "resources": resources,
    }
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    goal = Goal(template, unknown=frozenset({"on"}), purpose=Validated())
    GoalCompiler(REGISTRY, Limits()).compile(goal, Identity("s", "i", "p"), sealer)


VM = "v: {{type: OS::Nova::Server, properties: {{image: i, flavor: f, {}}}}}"
FITS = "'" + "x" * 49149 + "'"
"""The longest text that Nova takes as user_data."""
BOUNDED = "Content-Type: multipart/mixed; boundary=B\\n\\n--B\\nContent-Transfer-Encoding: base64\\n\\n"
IN_BASE64 = f'user_data_format: SOFTWARE_CONFIG, user_data: "{BOUNDED}{"eHh4" * 12500}\\n--B--"'
"""A message of 50,000 characters with a text of 37,500."""


@pytest.mark.parametrize(
    ("properties", "path", "words"),
    [
        (f"user_data_format: RAW, user_data: {FITS}", "", ""),
        (
            f"user_data_format: RAW, user_data: {FITS[:-1]}y'",
            "user_data",
            "65536 characters in base64, above Nova's limit",
        ),
        ("user_data_format: RAW, user_data: '" + "é" * 24575 + "'", "user_data", "65536 characters"),
        # What Stoker adds to the text is longer than the room that is left.
        (f"user_data: {FITS}", "user_data", "above Nova's limit of 65535"),
        (f"user_data_format: SOFTWARE_CONFIG, user_data: {FITS}", "user_data", "limit of 65535"),
        ("user_data: '" + "x" * 40000 + "'", "", ""),
        # A message of several parts is written again, and may become shorter.
        (IN_BASE64, "", ""),
        (f"metadata: {{a: {'x' * 255}, 'b c-_:.': 1}}", "", ""),
        (f"metadata: {{a: {'x' * 256}}}", "metadata.a", "256 characters, above Nova's limit of 255"),
        ("metadata: {a/b: c}", "metadata.a/b", "letters, digits, spaces"),
        (f"metadata: {{{'n' * 256}: c}}", "metadata." + "n" * 256, "1 to 255 letters"),
        (f"metadata: {{a: {UNKNOWN}}}", "", ""),
        (f"name: {'n' * 255}", "", ""),
        (f"name: {'n' * 256}", "name", "max: 255"),
        (f"tags: [{'t' * 60}]", "", ""),
        (f"tags: [{'t' * 61}]", "tags.0", "max: 60"),
        ("tags: [one, a/b]", "tags.1", "no slash"),
        (f"tags: [{UNKNOWN}, a/b]", "tags.1", "no slash"),
        (f"tags: {[str(number) for number in range(51)]}", "tags", "max: 50"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_texts_of_a_server_are_as_long_as_nova_takes_them(properties: str, path: str, words: str) -> None:
    check(VM.format(properties), path and f"resources.v.properties.{path}", words)


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        ("Neutron::Net", ""),
        ("Neutron::Router", ""),
        ("Neutron::SecurityGroup", ""),
        ("Neutron::QoSPolicy", ""),
        ("Nova::ServerGroup", ""),
        ("Cinder::Volume", ", size: 1"),
        ("Octavia::LoadBalancer", ", vip_subnet: s"),
    ],
)
def test_a_name_is_as_long_as_its_service_takes_it(kind: str, others: str) -> None:
    named = "n: {{type: OS::{}, properties: {{name: {}{}}}}}"
    check(named.format(kind, "n" * 255, others), "", "")
    check(named.format(kind, "n" * 256, others), "resources.n.properties.name", "max: 255")


def test_a_tag_is_as_long_as_neutron_takes_it() -> None:
    check(f"n: {{type: OS::Neutron::Net, properties: {{tags: [{'t' * 255}]}}}}", "", "")
    check(
        f"n: {{type: OS::Neutron::Net, properties: {{tags: [{'t' * 256}]}}}}",
        "resources.n.properties.tags.0",
        "max: 255",
    )


ALONE = "n: {type: OS::Neutron::Net}\n"
EXTERNAL = "n: {type: OS::Neutron::Net, properties: {value_specs: {'router:external': true}}}\n"
PROVIDED = "n: {{type: OS::Neutron::ProviderNet, properties: {{network_type: flat, router_external: {}}}}}\n"
S = OTHER.format("cidr: 10.0.0.0/24")
FREE = "f: {type: OS::Neutron::FloatingIP, properties: {floating_network: {get_resource: n}}}\n"
GATE = "r: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: {get_resource: n}}}}\n"
RBAC = (
    "a: {type: OS::Neutron::RBACPolicy, properties: {object_type: network, action: access_as_external,"
    " target_tenant: '*', object_id: {get_resource: n}}}\n"
)
ON_NET = SERVER.format("network: {get_resource: n}")
TAKEN = PORT.format("p", "fixed_ips: [{ip_address: 10.0.0.9}]")


@pytest.mark.parametrize(
    ("resources", "path", "words"),
    [
        (ALONE + S + FREE, "f.properties.floating_network", "the network n is not external"),
        (EXTERNAL + S + FREE, "", ""),
        (EXTERNAL + FREE, "f.properties.floating_network", "has no subnet"),
        (PROVIDED.format("false") + S + FREE, "f.properties.floating_network", "is not external"),
        (PROVIDED.format("true") + S + FREE, "", ""),
        (PROVIDED.format(UNKNOWN) + S + FREE, "", ""),
        (ALONE + S + GATE, "r.properties.external_gateway_info.network", "is not external"),
        (EXTERNAL + S + GATE, "", ""),
        # The policy makes the network external.
        (ALONE + S + FREE + RBAC, "", ""),
        (ALONE + ON_NET, "v.properties.networks.0.network", "add an OS::Neutron::Subnet"),
        (ALONE + S + ON_NET, "", ""),
        (ALONE + ON_NET.replace("n}}", "n}, port_extra_properties: {no_fixed_ips: true}}"), "", ""),
        (ALONE + TAKEN, "p.properties.fixed_ips", "add an OS::Neutron::Subnet"),
        (ALONE + S + TAKEN, "", ""),
        (ALONE + PORT.format("p", "no_fixed_ips: true"), "", ""),
        (ALONE + PORT.format("p", "admin_state_up: true"), "", ""),
        # A nested stack may give the network a subnet, also by what leads to the network.
        (ALONE + ON_NET + "c: {type: c.yaml, properties: {x: {get_resource: n}}}", "", ""),
        (
            ALONE
            + ON_NET
            + "q: {type: OS::Neutron::Port, properties: {network: {get_resource: n}}}\n"
            + "c: {type: c.yaml, properties: {x: {get_attr: [q, network_id]}}}",
            "",
            "",
        ),
        ("n: {type: OS::Neutron::Net, properties: {name: n}}\n" + ON_NET + "c: {type: c.yaml}", "", ""),
        (
            ALONE + ON_NET + "s: {type: OS::Neutron::Subnet, properties: {cidr: 10.0.0.0/24, network: "
            "{get_attr: [n, show, id]}}}",
            "",
            "",
        ),
    ],
)
def test_a_new_network_has_what_its_users_need(resources: str, path: str, words: str) -> None:
    child = {
        "heat_template_version": "2018-08-31",
        "parameters": {"x": {"type": "string", "default": ""}},
        "resources": {"v": {"type": "OS::Heat::Value", "properties": {"value": "v"}}},
    }
    where = [f"resources.{path}"] if path else []
    used = OUTSIDE if UNKNOWN in resources else ""
    errors = refusals(used + resources, purpose=CREATED, files={"c.yaml": yaml.safe_dump(child)})
    assert list(errors) == where
    assert words in "".join(errors.values())
    # A network that exists may have got it from somebody else.
    assert refusals(used + resources, files={"c.yaml": yaml.safe_dump(child)}) == {}


@pytest.mark.parametrize("purpose", [PREVIEWED, Validated()], ids=["previewed", "validated"])
def test_a_stack_that_does_not_exist_yet_is_judged_as_a_new_one(purpose: Purpose) -> None:
    assert list(refusals(ALONE + ON_NET, purpose=purpose)) == ["resources.v.properties.networks.0.network"]
