"""The small types of Neutron on a real one: each property changes in place, replaces, or is refused."""

import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from stoker.resources.contract.errors import PermanentError, RetryableError
from stoker.resources.contract.schema import Property

Json = typing.Any


def assert_replaced(driven: typing.Any, **properties: Json) -> None:
    """Each of these changes replaces the thing."""
    for name, value in properties.items():
        assert driven.update(**{name: value}) == "replace", name


def test_changes_of_a_policy_for_traffic_and_its_rules(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    network = operator.connection.network
    policy = make("QoSPolicy", description="slow")
    remote = network.get_qos_policy(policy.id)
    assert (remote.description, remote.is_shared) == ("slow", False)
    assert policy.update(name=f"slow-{operator.name}", description="slower", shared=True) == "updated"
    remote = network.get_qos_policy(policy.id)
    assert (remote.name, remote.description) == (f"slow-{operator.name}", "slower")
    assert remote.is_shared
    assert_replaced(policy, tenant_id="other")

    limit = make("QoSBandwidthLimitRule", policy=f"slow-{operator.name}", max_kbps=100, tenant_id=operator.id)
    other = make("QoSBandwidthLimitRule", policy=policy.id, max_kbps=50, direction="ingress")
    assert limit.update(max_kbps=200, max_burst_kbps=20) == "updated"
    changed = network.get_qos_bandwidth_limit_rule(limit.id, policy.id)
    assert (changed.max_kbps, changed.max_burst_kbps, changed.direction) == (200, 20, "egress")
    assert_replaced(limit, policy="other", tenant_id="other")
    again = make.new("QoSBandwidthLimitRule", policy=policy.id, max_kbps=1)
    with pytest.raises(PermanentError, match="network 409"):
        again.create()
    assert again.plugin.find_created("key", again.target, again.context) is None
    other.delete()

    mark = make("QoSDscpMarkingRule", policy=policy.id, dscp_mark=16)
    assert mark.update(dscp_mark=18) == "updated"
    assert network.get_qos_dscp_marking_rule(mark.id, policy.id).dscp_mark == 18
    least = make("QoSMinimumBandwidthRule", policy=policy.id, min_kbps=10)
    assert least.update(min_kbps=20, direction="ingress") == "updated"
    guaranteed = network.get_qos_minimum_bandwidth_rule(least.id, policy.id)
    assert (guaranteed.min_kbps, guaranteed.direction) == (20, "ingress")
    rate = make("QoSMinimumPacketRateRule", policy=policy.id, min_kpps=10, direction="any")
    assert rate.update(min_kpps=20) == "updated"
    assert network.get_qos_minimum_packet_rate_rule(rate.id, policy.id).min_kpps == 20
    rules = policy.plugin.refresh(policy.target, policy.context)["thing"]["rules"]
    assert {rule["id"] for rule in rules} == {limit.id, mark.id, least.id, rate.id}
    net = make("Net", qos_policy=policy.id)
    assert network.get_network(net.id).qos_policy_id == policy.id
    net.delete()
    for rule in (limit, mark, least, rate):
        rule.act("check")
        rule.delete()
        rule.delete()
    policy.delete()
    mark.delete()


def test_changes_of_pools_of_subnets_and_address_scopes(make: Maker, project: Project) -> None:
    network = project.connection.network
    scope = make("AddressScope")
    assert scope.update(name="scope") == "updated"
    assert network.get_address_scope(scope.id).name == "scope"
    assert_replaced(scope, ip_version=6, tenant_id="other")
    pool = make("SubnetPool", prefixes=["10.60.0.0/16"], address_scope="scope", tags=["a"])
    assert network.get_subnet_pool(pool.id).tags == ["a"]
    assert pool.update(name="pool", prefixes=["10.60.0.0/16", "10.61.0.0/16"], tags=["b"]) == "updated"
    assert pool.update(min_prefixlen=20, default_prefixlen=24, max_prefixlen=28) == "updated"
    assert pool.update(default_quota=512) == "updated"
    remote = network.get_subnet_pool(pool.id)
    assert (remote.name, remote.tags, remote.default_quota) == ("pool", ["b"], 512)
    lengths = (remote.minimum_prefix_length, remote.default_prefix_length, remote.maximum_prefix_length)
    assert [int(length) for length in lengths] == [20, 24, 28]
    assert len(remote.prefixes) + (remote.prefixes == ["10.60.0.0/15"]) == 2
    assert_replaced(pool, shared=True, tenant_id="other")
    subnet = make("Subnet", network=make("Net").id, subnetpool=pool.id)
    assert network.get_subnet(subnet.id).cidr.endswith("/24")
    for thing, user in (
        (pool, f"subnet {subnet.id}: network 400"),
        (scope, f"subnet pool {pool.id}: network 409"),
    ):
        with pytest.raises(RetryableError, match=f"still in use by {user}"):
            thing.delete()
    subnet.delete()
    assert pool.update(address_scope=None) == "updated"
    assert network.get_subnet_pool(pool.id).address_scope_id is None
    pool.delete()
    scope.delete()
    scope.delete()


def test_changes_of_a_segment(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    segment = make(
        "Segment",
        network=make("Net").id,
        network_type="vlan",
        physical_network="physnet1",
        segmentation_id=777,
        description="d",
    )
    assert segment.update(name="s", description="e") == "updated"
    remote = operator.connection.network.get_segment(segment.id)
    assert (remote.name, remote.description, remote.segmentation_id) == ("s", "e", 777)
    assert_replaced(segment, segmentation_id=778, physical_network="physnet2", network="other")
    segment.delete()


def test_changes_of_a_permission(make: Maker, project: Project, other: Project) -> None:
    net = make("Net", name="shared")
    policy = make(
        "RBACPolicy",
        object_type="network",
        object_id="shared",
        action="access_as_shared",
        target_tenant=other.id,
    )
    assert other.connection.network.find_network(net.id) is not None
    second = make.new(
        "RBACPolicy",
        object_type="network",
        object_id=net.id,
        action="access_as_shared",
        target_tenant=other.id,
    )
    with pytest.raises(PermanentError, match="network 409"):
        second.create()
    assert policy.update(target_tenant=project.id) == "updated"
    assert project.connection.network.get_rbac_policy(policy.id).target_project_id == project.id
    assert_replaced(policy, object_type="qos_policy", object_id="other", tenant_id="other")
    policy.delete()


def test_routes_of_a_router_are_added_and_removed(make: Maker, project: Project) -> None:
    network = project.connection.network
    router = make("Router")
    subnet = make("Subnet", network=make("Net").id, cidr="10.3.0.0/24")
    make("RouterInterface", router=router.id, subnet=subnet.id)

    def routes() -> list[Json]:
        return sorted((item["destination"], item["nexthop"]) for item in network.get_router(router.id).routes)

    route = make("ExtraRoute", router_id=router.id, destination="10.50.0.0/16", nexthop="10.3.0.5")
    assert route.id == f"{router.id}:10.50.0.0/16:10.3.0.5"
    same = make.new("ExtraRoute", router_id=router.id, destination="10.50.0.0/16", nexthop="10.3.0.5")
    with pytest.raises(PermanentError, match="Route duplicates an existing route"):
        same.create()
    same.delete()
    assert_replaced(route, router_id="other", destination="10.51.0.0/16", nexthop="10.3.0.6")
    more = make(
        "ExtraRouteSet",
        router=router.id,
        routes=[
            {"destination": "10.52.0.0/16", "nexthop": "10.3.0.5"},
            {"destination": "10.53.0.0/16", "nexthop": "10.3.0.5"},
        ],
    )
    assert more.id == router.id
    assert len(routes()) == 3
    assert more.update(routes=[{"destination": "10.52.0.0/16", "nexthop": "10.3.0.6"}]) == "updated"
    assert routes() == [("10.50.0.0/16", "10.3.0.5"), ("10.52.0.0/16", "10.3.0.6")]
    with pytest.raises(PermanentError, match="Route duplicates an existing route"):
        more.update(routes=[{"destination": "10.50.0.0/16", "nexthop": "10.3.0.5"}])
    assert_replaced(more, router="other")
    none = make("ExtraRouteSet", router=router.id)
    for driven in (none, route):
        driven.act("check")
        driven.delete()
        driven.delete()
    assert routes() == [("10.52.0.0/16", "10.3.0.6")]
    network.update_router(router.id, routes=[])


def test_changes_of_a_forwarded_port(make: Maker, project: Project) -> None:
    network = project.connection.network
    router = make("Router", external_gateway_info={"network": "public"})
    subnet = make("Subnet", network=make("Net").id, cidr="10.3.0.0/24")
    make("RouterInterface", router=router.id, subnet=subnet.id)
    port = make("Port", network=subnet.target.properties["network"], name="door")
    address = port.attribute("fixed_ips")[0]["ip_address"]
    floating = make("FloatingIP", floating_network="public")
    forwarded = make(
        "FloatingIPPortForward",
        floating_ip=floating.attribute("floating_ip_address"),
        internal_port="door",
        internal_ip_address=address,
        internal_port_number=22,
        external_port=2222,
        protocol="tcp",
    )
    remote = network.get_port_forwarding(forwarded.id, floating.id)
    assert (remote.internal_port, remote.external_port, remote.protocol) == (22, 2222, "tcp")
    assert forwarded.update(internal_port_number=23, external_port=2223, protocol="udp") == "updated"
    remote = network.get_port_forwarding(forwarded.id, floating.id)
    assert (remote.internal_port, remote.external_port, remote.protocol) == (23, 2223, "udp")
    assert_replaced(forwarded, floating_ip="192.0.2.1")
    forwarded.act("check")
    forwarded.delete()
    forwarded.delete()
    floating.delete()
    forwarded.delete()


def test_labels_and_rules_of_metering_are_made_and_removed(
    make_as_operator: Maker, operator: Project
) -> None:
    make = make_as_operator
    label = make("MeteringLabel", description="to the world")
    rule = make("MeteringRule", metering_label_id=label.id, remote_ip_prefix="192.0.2.0/24")
    assert (rule.attribute("direction"), rule.attribute("excluded")) == ("ingress", False)
    assert label.attribute("description") == "to the world"
    for driven in (label, rule):
        for name, schema in driven.plugin.properties_schema.items():
            assert isinstance(schema, Property)
            assert not schema.update_allowed, name
    assert rule.plugin.find_created("key", rule.target, rule.context) == rule.id
    rule.delete()
    label.delete()
    label.delete()
    assert list(operator.connection.network.metering_labels(project_id=operator.id)) == []


def test_limits_of_a_project(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    network = operator.connection.network
    quota = make("OS::Neutron::Quota", project=operator.name, port=7)
    assert network.get_quota(operator.id).ports == 7
    assert quota.update(port=8, network=3) == "updated"
    assert (network.get_quota(operator.id).ports, network.get_quota(operator.id).networks) == (8, 3)
    assert_replaced(quota, project="other")
    quota.delete()
    quota.delete()
    assert network.get_quota(operator.id).ports == -1
