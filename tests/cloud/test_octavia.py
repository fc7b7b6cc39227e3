"""Load balancers on a real Octavia: each property changes in place or replaces, and parts take turns."""

import typing
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from stoker.resources.contract.errors import PermanentError

Json = typing.Any
pytestmark = pytest.mark.usefixtures("balancers")


def make_balancer(make: Maker, **properties: Json) -> typing.Any:
    network = make("Net")
    subnet = make("Subnet", network=network.id, cidr="10.8.0.0/24")
    return make("OS::Octavia::LoadBalancer", vip_subnet=subnet.id, **properties)


def test_changes_of_a_balancer_and_its_listener(make: Maker, project: Project) -> None:
    balancer = make_balancer(make)
    octavia = project.connection.load_balancer
    assert balancer.update(name="front", description="of the shop") == "updated"
    assert balancer.update(admin_state_up=False) == "updated"
    remote = octavia.get_load_balancer(balancer.id)
    assert (remote.name, remote.description, remote.is_admin_state_up) == ("front", "of the shop", False)
    assert balancer.attribute("vip_address") == octavia.get_load_balancer(balancer.id).vip_address
    assert balancer.update(name=None) == "updated"
    assert octavia.get_load_balancer(balancer.id).name.startswith("stack-")
    for name, value in (
        ("vip_subnet", "other"),
        ("vip_address", "10.8.0.9"),
        ("provider", "octavia"),
        ("flavor", "f"),
        ("availability_zone", "z"),
        ("tenant_id", "t"),
    ):
        assert balancer.update(**{name: value}) == "replace", name

    listener = make("OS::Octavia::Listener", loadbalancer=balancer.id, protocol="HTTP", protocol_port=80)
    pool = make(
        "OS::Octavia::Pool",
        loadbalancer=balancer.id,
        protocol="HTTP",
        lb_algorithm="ROUND_ROBIN",
        name="pool",
    )
    assert listener.update(default_pool="pool") == "updated"
    assert listener.update(name="in", description="d", admin_state_up=False) == "updated"
    assert listener.update(connection_limit=9, allowed_cidrs=["10.0.0.0/8"]) == "updated"
    changed = octavia.get_listener(listener.id)
    assert (changed.name, changed.description, changed.is_admin_state_up) == ("in", "d", False)
    assert (changed.default_pool_id, changed.connection_limit) == (pool.id, 9)
    assert changed.allowed_cidrs == ["10.0.0.0/8"]
    assert listener.update(default_pool=None, allowed_cidrs=None, connection_limit=None) == "updated"
    changed = octavia.get_listener(listener.id)
    assert (changed.default_pool_id, changed.allowed_cidrs, changed.connection_limit) == (None, None, -1)
    for name, value in (
        ("protocol", "TCP"),
        ("protocol_port", 81),
        ("loadbalancer", "o"),
        ("tenant_id", "t"),
    ):
        assert listener.update(**{name: value}) == "replace", name
    listener.act("check")
    pool.delete()
    listener.delete()
    balancer.delete()
    balancer.delete()
    assert not project.leftovers().get("load balancers")
    with pytest.raises(PermanentError, match="404"):
        listener.act("check")


def test_changes_of_a_pool_its_members_and_its_monitor(make: Maker, project: Project) -> None:
    balancer = make_balancer(make)
    octavia = project.connection.load_balancer
    pool = make(
        "OS::Octavia::Pool",
        loadbalancer=balancer.id,
        protocol="HTTP",
        lb_algorithm="ROUND_ROBIN",
        session_persistence={"type": "APP_COOKIE", "cookie_name": "c"},
    )
    assert pool.update(lb_algorithm="SOURCE_IP", name="p", description="d") == "updated"
    assert pool.update(session_persistence={"type": "SOURCE_IP"}, tls_enabled=True) == "updated"
    assert pool.update(admin_state_up=False) == "updated"
    remote = octavia.get_pool(pool.id)
    assert (remote.lb_algorithm, remote.name, remote.description) == ("SOURCE_IP", "p", "d")
    assert (remote.session_persistence["type"], remote.tls_enabled) == ("SOURCE_IP", True)
    assert not remote.is_admin_state_up
    assert pool.update(session_persistence=None) == "updated"
    assert octavia.get_pool(pool.id).session_persistence is None
    for name, value in (("protocol", "TCP"), ("listener", "l"), ("loadbalancer", "o")):
        assert pool.update(**{name: value}) == "replace", name

    member = make("OS::Octavia::PoolMember", pool="p", address="10.8.0.5", protocol_port=80, tags=["blue"])
    assert member.update(weight=7, admin_state_up=False, tags=["red"]) == "updated"
    changed = octavia.get_member(member.id, pool.id)
    assert (changed.weight, changed.is_admin_state_up) == (7, False)
    assert {tag for tag in changed.tags if not tag.startswith("stoker-")} == {"red"}
    assert member.plugin.live_properties(member.target, member.context)["tags"] == ["red"]
    assert member.plugin.find_created(member.target.creation_key, member.target, member.context) == member.id
    for name, value in (
        ("address", "10.8.0.6"),
        ("protocol_port", 81),
        ("pool", "o"),
        ("subnet", "s"),
        ("monitor_port", 1),
        ("monitor_address", "10.8.0.7"),
    ):
        assert member.update(**{name: value}) == "replace", name

    monitor = make("OS::Octavia::HealthMonitor", pool=pool.id, type="HTTP", delay=5, timeout=3, max_retries=3)
    assert monitor.update(delay=9, timeout=4, max_retries=2, admin_state_up=False) == "updated"
    assert monitor.update(http_method="HEAD", url_path="/up", expected_codes="200-204") == "updated"
    checked = octavia.get_health_monitor(monitor.id)
    assert (checked.delay, checked.timeout, checked.max_retries) == (9, 4, 2)
    assert (checked.http_method, checked.url_path, checked.expected_codes) == ("HEAD", "/up", "200-204")
    for name, value in (("type", "TCP"), ("pool", "o"), ("tenant_id", "t")):
        assert monitor.update(**{name: value}) == "replace", name
    assert pool.plugin.refresh(pool.target, pool.context)["thing"]["healthmonitor_id"] == monitor.id
    monitor.delete()
    member.delete()
    pool.delete()
    member.delete()
    assert list(octavia.pools()) == []


def test_changes_of_policies_and_rules(make: Maker, project: Project) -> None:
    balancer = make_balancer(make)
    octavia = project.connection.load_balancer
    listener = make("OS::Octavia::Listener", loadbalancer=balancer.id, protocol="HTTP", protocol_port=80)
    pool = make("OS::Octavia::Pool", loadbalancer=balancer.id, protocol="HTTP", lb_algorithm="ROUND_ROBIN")
    policy = make("OS::Octavia::L7Policy", listener=listener.id, action="REJECT", position=1)
    assert policy.update(name="p", description="d", admin_state_up=False) == "updated"
    assert policy.update(action="REDIRECT_TO_POOL", redirect_pool=pool.id) == "updated"
    remote = octavia.get_l7_policy(policy.id)
    assert (remote.name, remote.description, remote.is_admin_state_up) == ("p", "d", False)
    assert (remote.action, remote.redirect_pool_id) == ("REDIRECT_TO_POOL", pool.id)
    assert (
        policy.update(action="REDIRECT_TO_URL", redirect_pool=None, redirect_url="http://a.test/")
        == "updated"
    )
    assert policy.update(redirect_url="http://b.test/") == "updated"
    remote = octavia.get_l7_policy(policy.id)
    assert (remote.action, remote.redirect_pool_id) == ("REDIRECT_TO_URL", None)
    assert remote.redirect_url == "http://b.test/"
    assert policy.update(action="REJECT", redirect_url=None) == "updated"
    assert octavia.get_l7_policy(policy.id).action == "REJECT"
    assert policy.update(listener="other") == "replace"

    rule = make(
        "OS::Octavia::L7Rule", l7policy=policy.id, type="PATH", compare_type="STARTS_WITH", value="/api"
    )
    assert rule.update(type="HEADER", key="X-Old", compare_type="EQUAL_TO", value="yes") == "updated"
    assert rule.update(invert=True, admin_state_up=False) == "updated"
    changed = octavia.get_l7_rule(rule.id, policy.id)
    assert (changed.type, changed.key, changed.compare_type) == ("HEADER", "X-Old", "EQUAL_TO")
    assert (changed.rule_value, changed.invert, changed.is_admin_state_up) == ("yes", True, False)
    assert rule.update(l7policy="other") == "replace"
    assert policy.plugin.refresh(policy.target, policy.context)["thing"]["rules"] == [{"id": rule.id}]
    rule.delete()
    policy.delete()


def test_parts_that_are_made_changed_and_deleted_at_the_same_time_take_turns(
    make: Maker, project: Project
) -> None:
    """The steps never fail: a refusal for the turn of another part is no retry."""
    balancer = make_balancer(make)
    pool = make("OS::Octavia::Pool", loadbalancer=balancer.id, protocol="HTTP", lb_algorithm="ROUND_ROBIN")
    members = [
        make.new("OS::Octavia::PoolMember", pool=pool.id, address=f"10.8.0.{number}", protocol_port=80)
        for number in range(10, 16)
    ]
    with ThreadPoolExecutor(len(members)) as threads:
        list(threads.map(lambda member: member.create(), members))
        list(threads.map(lambda member: member.update(weight=3), members))
        octavia = project.connection.load_balancer
        assert {member.weight for member in octavia.members(pool.id)} == {3}
        list(threads.map(lambda member: member.delete(), members))
    assert [member.target.attempt for member in members] == [1] * len(members)
    assert list(octavia.members(pool.id)) == []


def test_flavors_and_zones_of_an_operator(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    octavia = operator.connection.load_balancer
    profile = make(
        "OS::Octavia::FlavorProfile",
        name=f"profile-{operator.name}",
        provider_name="amphora",
        flavor_data='{"loadbalancer_topology": "SINGLE"}',
    )
    flavor = make("OS::Octavia::Flavor", flavor_profile=f"profile-{operator.name}")
    assert profile.update(name="one") == "updated"
    assert flavor.update(name=f"small-{operator.name}", description="d", enabled=False) == "updated"
    remote = octavia.get_flavor(flavor.id)
    assert (remote.name, remote.description, remote.is_enabled) == (f"small-{operator.name}", "d", False)
    assert flavor.attribute("flavor_profile_id") == profile.id
    assert flavor.update(flavor_profile="other") == "replace"
    zones = make(
        "OS::Octavia::AvailabilityZoneProfile",
        name=f"zones-{operator.name}",
        provider_name="amphora",
        availability_zone_data='{"compute_zone": "nova"}',
    )
    zone = make("OS::Octavia::AvailabilityZone", availability_zone_profile=f"zones-{operator.name}")
    assert zone.update(description="d", enabled=False) == "updated"
    assert octavia.get_availability_zone(zone.id).description == "d"
    assert zone.update(name="other") == "replace"
    assert zones.update(name="two") == "updated"
    quota = make("OS::Octavia::Quota", project=operator.id, pool=5, member=-1)
    assert octavia.get_quota(operator.id).pools == 5
    assert quota.update(pool=6, listener=3) == "updated"
    assert (octavia.get_quota(operator.id).pools, octavia.get_quota(operator.id).listeners) == (6, 3)
    for driven in (quota, zone, zones, flavor, profile):
        driven.act("check")
        driven.delete()
        driven.delete()
    assert octavia.get_quota(operator.id).pools != 6
    assert octavia.find_flavor(flavor.id) is None
