"""Changes of each property of the network types: in place, replaced, or refused by the service."""

import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.views import ReplacementView

Json = typing.Any


def test_changes_of_a_network(make: Maker, project: Project) -> None:
    net = make("Net")
    network = project.connection.network
    assert net.update(name="blue") == "updated"
    assert net.update(admin_state_up=False) == "updated"
    assert net.update(port_security_enabled=False) == "updated"
    assert net.update(dns_domain="example.org.") == "updated"
    assert net.update(tags=["a", "b"]) == "updated"
    assert net.update(value_specs={"mtu": 1400}) == "updated"
    remote = network.get_network(net.id)
    assert (remote.name, remote.is_admin_state_up, remote.is_port_security_enabled) == ("blue", False, False)
    assert (remote.dns_domain, sorted(remote.tags), remote.mtu) == ("example.org.", ["a", "b"], 1400)
    assert net.update(tags=None) == "updated"
    assert network.get_network(net.id).tags == []
    assert net.update(availability_zone_hints=["nova"]) == "replace"
    assert net.update(tenant_id="another") == "replace"
    with pytest.raises(PermanentError, match=r"network 403: .*req-"):
        net.update(shared=True)


def test_changes_of_a_subnet(make: Maker, project: Project) -> None:
    net = make("Net")
    subnet = make("Subnet", network=net.id, cidr="10.3.0.0/24", enable_dhcp=True)
    network = project.connection.network
    assert subnet.update(name="one") == "updated"
    assert subnet.update(dns_nameservers=["192.0.2.1"]) == "updated"
    assert subnet.update(enable_dhcp=False) == "updated"
    assert subnet.update(allocation_pools=[{"start": "10.3.0.20", "end": "10.3.0.40"}]) == "updated"
    assert subnet.update(gateway_ip="10.3.0.9") == "updated"
    route = {"destination": "10.9.0.0/16", "nexthop": "10.3.0.5"}
    assert subnet.update(host_routes=[route]) == "updated"
    assert subnet.update(tags=["t"]) == "updated"
    remote = network.get_subnet(subnet.id)
    assert (remote.name, remote.dns_nameservers, remote.gateway_ip) == ("one", ["192.0.2.1"], "10.3.0.9")
    assert (remote.is_dhcp_enabled, remote.host_routes, remote.tags) == (False, [route], ["t"])
    assert remote.allocation_pools == [{"start": "10.3.0.20", "end": "10.3.0.40"}]
    assert subnet.update(gateway_ip="") == "updated"
    assert network.get_subnet(subnet.id).gateway_ip is None
    for name, value in (
        ("cidr", "10.4.0.0/24"),
        ("network", "other"),
        ("subnetpool", "pool"),
        ("prefixlen", 26),
        ("tenant_id", "another"),
    ):
        assert subnet.update(**{name: value}) == "replace", name
    six = make("Subnet", network=net.id, cidr="fd00::/64", ip_version=6, ipv6_ra_mode="slaac")
    assert six.update(ipv6_ra_mode="dhcpv6-stateful") == "replace"
    assert six.update(ipv6_address_mode="slaac") == "replace"


def test_changes_of_a_port(make: Maker, project: Project) -> None:
    net = make("Net")
    subnet = make("Subnet", network=net.id, cidr="10.3.0.0/24")
    group = make("SecurityGroup")
    port = make("Port", network=net.id)
    network = project.connection.network
    assert port.update(name="p") == "updated"
    assert port.update(admin_state_up=False) == "updated"
    assert port.update(security_groups=[group.id]) == "updated"
    assert port.update(fixed_ips=[{"subnet": subnet.id, "ip_address": "10.3.0.33"}]) == "updated"
    assert port.update(allowed_address_pairs=[{"ip_address": "10.7.0.0/24"}]) == "updated"
    assert port.update(device_id="d", device_owner="test:owner") == "updated"
    assert port.update(**{"binding:vnic_type": "direct"}) == "updated"
    assert port.update(dns_name="host") == "updated"
    assert port.update(tags=["t"]) == "updated"
    assert port.update(value_specs={"description": "mine"}) == "updated"
    remote = network.get_port(port.id)
    assert (remote.name, remote.is_admin_state_up, remote.security_group_ids) == ("p", False, [group.id])
    assert [item["ip_address"] for item in remote.fixed_ips] == ["10.3.0.33"]
    assert [item["ip_address"] for item in remote.allowed_address_pairs] == ["10.7.0.0/24"]
    assert (remote.device_id, remote.device_owner, remote.binding_vnic_type) == ("d", "test:owner", "direct")
    assert (remote.dns_name, remote.tags, remote.description) == ("host", ["t"], "mine")
    assert port.update(security_groups=None) == "updated"
    (default,) = network.security_groups(name="default", project_id=project.id)
    assert network.get_port(port.id).security_group_ids == [default.id]
    assert port.update(allowed_address_pairs=None) == "updated"
    assert network.get_port(port.id).allowed_address_pairs == []
    assert port.update(fixed_ips=None, no_fixed_ips=True) == "updated"
    assert network.get_port(port.id).fixed_ips == []
    assert port.update(network="other") == "replace"
    assert port.update(mac_address="fa:16:3e:00:00:01") == "replace"


def test_a_replacement_of_a_port_gets_its_address(make: Maker, project: Project) -> None:
    net = make("Net")
    subnet = make("Subnet", network=net.id, cidr="10.3.0.0/24")
    address = [{"subnet": subnet.id, "ip_address": "10.3.0.33"}]
    port = make("Port", network=net.id, fixed_ips=address)
    port.plugin.prepare_for_replace(port.target, port.context)
    port.plugin.prepare_for_replace(port.target, port.context)
    new = make("Port", network=net.id, fixed_ips=address)
    port.context.replaced_by = ReplacementView(port.target.type, new.target.key)
    port.plugin.restore_after_replace(port.target, port.context)
    assert project.connection.network.get_port(new.id).fixed_ips == []
    new.delete()
    port.plugin.restore_after_replace(port.target, port.context)
    remote = project.connection.network.get_port(port.id)
    assert [item["ip_address"] for item in remote.fixed_ips] == ["10.3.0.33"]


def test_changes_of_a_router(make: Maker, project: Project) -> None:
    router = make("Router")
    network = project.connection.network
    assert router.update(name="r") == "updated"
    assert router.update(admin_state_up=False) == "updated"
    assert router.update(external_gateway_info={"network": "public"}) == "updated"
    assert router.update(tags=["t"]) == "updated"
    remote = network.get_router(router.id)
    assert (remote.name, remote.is_admin_state_up, remote.tags) == ("r", False, ["t"])
    assert remote.external_gateway_info["network_id"] == network.find_network("public").id
    assert router.update(external_gateway_info=None) == "updated"
    assert network.get_router(router.id).external_gateway_info is None
    for name, value in (("ha", True), ("distributed", True), ("tenant_id", "another")):
        assert router.update(**{name: value}) == "replace", name


def test_a_router_interface_is_there_once(make: Maker, project: Project) -> None:
    net = make("Net")
    router = make("Router")
    subnet = make("Subnet", network=net.id, cidr="10.3.0.0/24")
    port = make("Port", network=make("Net").id)
    interface = make("RouterInterface", router=router.id, subnet_id=subnet.id)
    assert interface.id == f"{router.id}:subnet_id={subnet.id}"
    second = make.new("RouterInterface", router=router.id, subnet_id=subnet.id)
    with pytest.raises(PermanentError, match="Router already has a port on subnet"):
        second.create()
    assert second.plugin.find_created("key", second.target, second.context) is None
    interface.act("check")
    for name, value in (("router", "other"), ("subnet", "other")):
        assert interface.update(**{name: value}) == "replace", name
    assert interface.update(subnet_id=None, port=port.id) == "replace"
    with pytest.raises(RetryableError, match=r"still in use by router .*: network 409: .*req-"):
        subnet.plugin.handle_delete(subnet.target, subnet.context)
    interface.delete()
    interface.delete()
    lost = make.new("RouterInterface", router=router.id, subnet_id=subnet.id)
    plugin = lost.plugin
    claim = plugin.handle_create(lost.target, lost.context)
    lost.take(claim)
    for _ in range(2):  # The second call is refused, for the first one was carried out.
        plugin.check_create_complete(lost.target, claim.progress, lost.context)
    assert plugin.find_created("key", lost.target, lost.context) == interface.id
    assert plugin.needs_replace_failed(lost.target, lost.context)
    assert plugin.find_created("key", lost.target, lost.context) is None


def test_changes_of_a_floating_ip(make: Maker, project: Project) -> None:
    net = make("Net")
    router = make("Router", external_gateway_info={"network": "public"})
    subnet = make("Subnet", network=net.id, cidr="10.3.0.0/24")
    make("RouterInterface", router=router.id, subnet=subnet.id)
    port = make("Port", network=net.id)
    other = make("Port", network=net.id)
    address = make("FloatingIP", floating_network="public")
    network = project.connection.network
    assert address.update(port_id=port.id) == "updated"
    assert network.get_ip(address.id).port_id == port.id
    assert address.update(port_id=other.id) == "updated"
    assert network.get_ip(address.id).port_id == other.id
    assert address.update(port_id=None) == "updated"
    assert network.get_ip(address.id).port_id is None
    for name, value in (
        ("floating_network", "other"),
        ("floating_subnet", "other"),
        ("floating_ip_address", "172.24.9.9"),
        ("value_specs", {"description": "x"}),
    ):
        assert address.update(**{name: value}) == "replace", name
    association = make("FloatingIPAssociation", floatingip_id=address.id, port_id=port.id)
    assert association.update(port_id=other.id) == "updated"
    assert network.get_ip(address.id).port_id == other.id
    second = make("FloatingIP", floating_network="public")
    assert association.update(floatingip_id=second.id) == "updated"
    assert network.get_ip(address.id).port_id is None
    assert network.get_ip(second.id).port_id == other.id
    association.delete()
    assert network.get_ip(second.id).port_id is None


def test_changes_of_a_security_group(make: Maker, project: Project) -> None:
    web = {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}
    group = make("SecurityGroup", rules=[web])
    network = project.connection.network

    def rules() -> set[tuple[Json, ...]]:
        rules_of_group = network.security_group_rules(security_group_id=group.id)
        return {
            (rule.direction, rule.ether_type, rule.protocol, rule.port_range_min) for rule in rules_of_group
        }

    everything_out = {("egress", "IPv4", None, None), ("egress", "IPv6", None, None)}
    assert rules() == {("ingress", "IPv4", "tcp", 80), *everything_out}
    assert group.update(name="g", description="d") == "updated"
    remote = network.get_security_group(group.id)
    assert (remote.name, remote.description) == ("g", "d")
    ids = {rule.id for rule in network.security_group_rules(security_group_id=group.id)}
    assert group.update(rules=[web, {"remote_mode": "remote_group_id"}]) == "updated"
    after = list(network.security_group_rules(security_group_id=group.id))
    assert ids < {rule.id for rule in after}
    assert group.id in {rule.remote_group_id for rule in after}
    assert group.update(rules=[{"direction": "egress", "protocol": "udp"}]) == "updated"
    assert rules() == {("egress", "IPv4", "udp", None)}
    assert group.update(rules=None) == "updated"
    assert rules() == everything_out


def test_a_security_group_rule_is_its_own_identity(make: Maker, project: Project) -> None:
    group = make("SecurityGroup")
    rule = make("SecurityGroupRule", security_group=group.id, protocol="icmp", description="ping")
    second = make.new("SecurityGroupRule", security_group=group.id, protocol="icmp")
    with pytest.raises(PermanentError, match=r"network 409: .*already exists"):
        second.create()
    assert second.plugin.find_created("key", second.target, second.context) is None
    for name, value in (
        ("description", "other"),
        ("direction", "egress"),
        ("ethertype", "IPv6"),
        ("port_range_min", 1),
        ("port_range_max", 1),
        ("protocol", "udp"),
        ("remote_group", "other"),
        ("remote_ip_prefix", "10.0.0.0/8"),
        ("security_group", "other"),
    ):
        assert rule.update(**{name: value}) == "replace", name
    assert rule.id in {item.id for item in project.connection.network.security_group_rules()}


def test_changes_of_a_provider_network(make_as_operator: Maker, operator: Project) -> None:
    net = make_as_operator("ProviderNet", network_type="vxlan", shared=False)
    assert net.update(shared=True, name="p", router_external=True, tags=["t"]) == "updated"
    remote = operator.connection.network.get_network(net.id)
    assert (remote.is_shared, remote.name, remote.is_router_external, remote.tags) == (True, "p", True, ["t"])
    assert net.update(tenant_id="another") == "replace"


@pytest.mark.parametrize("name", ["Net", "Router", "SecurityGroup"])
def test_a_lost_creation_is_found_again(make: Maker, project: Project, name: str) -> None:
    """The answer was lost, and another conductor begins again: with the same key, as its second attempt."""
    driven = make(name, **({"description": "mine"} if name == "SecurityGroup" else {}))
    plugin = driven.plugin
    key = driven.target.key
    assert plugin.find_created(key, driven.target, driven.context) == (
        None if name == "SecurityGroup" else driven.id
    )
    assert plugin.find_created("another", driven.target, driven.context) is None
    driven.delete()
    assert plugin.find_created(key, driven.target, driven.context) is None


def test_changes_of_a_trunk(make: Maker, project: Project) -> None:
    net = make("Net")
    parent, first, second = (make("Port", network=net.id) for _ in range(3))
    tagged = {"port": first.id, "segmentation_type": "vlan", "segmentation_id": 101}
    trunk = make("Trunk", port=parent.id, sub_ports=[tagged], description="mine")
    network = project.connection.network
    remote = network.get_trunk(trunk.id)
    assert (remote.port_id, remote.description, _tags(remote)) == (parent.id, "mine", {(first.id, 101)})
    assert trunk.attribute("port_id") == parent.id
    assert trunk.update(name="one", description="ours") == "updated"
    sub_port = {"port": second.id, "segmentation_type": "vlan", "segmentation_id": 101}
    assert trunk.update(sub_ports=[{**tagged, "segmentation_id": 102}, sub_port]) == "updated"
    remote = network.get_trunk(trunk.id)
    assert (remote.name, remote.description) == ("one", "ours")
    assert _tags(remote) == {(first.id, 102), (second.id, 101)}
    assert trunk.update(admin_state_up=False) == "updated"
    assert trunk.update(admin_state_up=True, sub_ports=[sub_port]) == "updated"
    assert _tags(network.get_trunk(trunk.id)) == {(second.id, 101)}
    assert trunk.update(sub_ports=None) == "updated"
    assert _tags(network.get_trunk(trunk.id)) == set()
    assert trunk.update(port=second.id) == "immutable"
    trunk.delete()
    assert list(network.trunks()) == []


def _tags(trunk: Json) -> set[tuple[str, int]]:
    return {(port["port_id"], port["segmentation_id"]) for port in trunk.sub_ports}
