"""The nested stack of a load balancer of CloudFormation's, on scripted answers."""

import typing

import pytest
from harness.fake_context import target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties

RESOURCE_TYPES = types_of("openstack.octavia")

Json = typing.Any
BALANCER = RESOURCE_TYPES["AWS::ElasticLoadBalancing::LoadBalancer"]()
LISTENER = {"InstancePort": 8080, "LoadBalancerPort": 80, "Protocol": "HTTP"}
CHECK = {
    "HealthyThreshold": 3,
    "Interval": 10,
    "Target": "HTTP:8080/up",
    "Timeout": 5,
    "UnhealthyThreshold": 4,
}
PROPERTIES = {"AvailabilityZones": ["nova"], "Listeners": [LISTENER]}


@pytest.fixture
def has_servers(scripted: ScriptedService) -> None:
    for number in (1, 2):
        address = {"ip_address": f"10.0.0.{number}", "subnet_id": f"net{number}"}
        answer = {"interfaceAttachments": [{"fixed_ips": []}, {"fixed_ips": [address]}]}
        scripted.answers[f"GET /servers/s{number}/os-interface"] = Answer(200, answer)
    scripted.answers["GET /servers/bare/os-interface"] = Answer(200, {"interfaceAttachments": []})


def resources(context: ScriptedContext, **changes: Json) -> Json:
    data = changes.pop("data", {})
    goal = BALANCER.child_goal(target_of(BALANCER, {**PROPERTIES, **changes}, data=data), context)
    return goal.template["resources"]


@pytest.mark.usefixtures("has_servers")
def test_each_listener_has_a_pool_with_all_servers(context: ScriptedContext) -> None:
    template = resources(
        context,
        Instances=["s1", "s2"],
        Listeners=[LISTENER, {**LISTENER, "Protocol": "TCP", "LoadBalancerPort": 22, "InstancePort": 22}],
    )
    kinds = sorted(body["type"].rpartition("::")[2] for body in template.values())
    assert kinds == ["Listener"] * 2 + ["LoadBalancer"] + ["Pool"] * 2 + ["PoolMember"] * 4
    assert template["balancer"]["properties"] == {"vip_subnet": "net1"}
    assert template["member_1_s2"]["properties"] == {
        "pool": {"get_resource": "pool_1"},
        "address": "10.0.0.2",
        "subnet": "net2",
        "protocol_port": 22,
    }
    assert "subnet" not in template["member_1_s1"]["properties"], "the balancer is in it already"
    assert template["listener_1"]["properties"] == {
        "loadbalancer": {"get_resource": "balancer"},
        "protocol": "TCP",
        "protocol_port": 22,
    }


@pytest.mark.usefixtures("has_servers")
def test_an_update_keeps_the_subnet(context: ScriptedContext) -> None:
    before = {"outputs": {"subnet": "net1", "address": "10.0.0.9"}}
    template = resources(context, Instances=["s2"], data=before)
    assert template["balancer"]["properties"] == {"vip_subnet": "net1"}
    values = BALANCER.attribute_values(target_of(BALANCER, PROPERTIES, data=before))
    assert (values["DNSName"], values["CanonicalHostedZoneName"]) == ("10.0.0.9", "")


@pytest.mark.usefixtures("has_servers")
@pytest.mark.parametrize(
    ("target", "monitor", "port"),
    [
        ("HTTP:8080/up", {"type": "HTTP", "url_path": "/up"}, None),
        ("HTTPS:443", {"type": "HTTPS", "url_path": "/"}, 443),
        ("TCP:9", {"type": "TCP"}, 9),
        ("SSL:8080", {"type": "TLS-HELLO"}, None),
    ],
)
def test_servers_are_checked(context: ScriptedContext, target: str, monitor: Json, port: int | None) -> None:
    template = resources(context, Instances=["s1"], HealthCheck={**CHECK, "Target": target})
    times = {"delay": 10, "timeout": 5, "max_retries": 4}
    assert template["monitor_0"]["properties"] == {"pool": {"get_resource": "pool_0"}, **times, **monitor}
    assert template["member_0_s1"]["properties"].get("monitor_port") == port


@pytest.mark.usefixtures("has_servers")
def test_a_server_without_a_port_is_refused(context: ScriptedContext) -> None:
    with pytest.raises(PermanentError, match="No network interface found for server bare"):
        resources(context, Instances=["bare"])


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ({"Interval": 4}, "Interval must be larger than Timeout"),
        ({"Target": "UDP:53"}, "UDP:53 is not a target such as HTTP:80/path"),
    ],
)
def test_wrong_checks(check: Json, why: str) -> None:
    values = resolve_properties(BALANCER.properties_schema, {**PROPERTIES, "HealthCheck": {**CHECK, **check}})
    with pytest.raises(PropertyError, match=why):
        BALANCER.validate(values)
