"""Rules and calls of the small types of Neutron; some of them no service of the tests has."""

import dataclasses
import typing
import urllib.parse

import pytest
from harness.fake_context import after, run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import OverQuota, PermanentError, PropertyError, RetryableError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.properties import validate_properties
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.service import QUOTA_PAUSE, Conflict

RESOURCE_TYPES = types_of("openstack.neutron")

Json = typing.Any
ONE = "aaaaaaaa-0000-4000-8000-000000000001"
TWO = "bbbbbbbb-0000-4000-8000-000000000002"
KEY = "11111111-2222-4333-8444-555555555555"


def plugin_of(name: str) -> ResourceType:
    return RESOURCE_TYPES[f"OS::Neutron::{name}"]()


@pytest.fixture
def context(scripted: ScriptedService) -> ScriptedContext:
    return ScriptedContext(scripted)


def changes(scripted: ScriptedService) -> list[tuple[str, Json]]:
    """The requests that change something, with their bodies."""
    pairs = zip(scripted.requests, scripted.sent, strict=True)
    return [(request, body) for request, body in pairs if not request.startswith("GET")]


@pytest.mark.parametrize(
    ("name", "properties", "message"),
    [
        ("SubnetPool", {"min_prefixlen": 26, "max_prefixlen": 24}, "min_prefixlen must not be above max"),
        ("SubnetPool", {"min_prefixlen": 26, "default_prefixlen": 24}, "must not be above default"),
        ("SubnetPool", {"default_prefixlen": 26, "max_prefixlen": 24}, "default_prefixlen must not be above"),
        ("Segment", {"network_type": "flat"}, "physical_network is needed for the type flat"),
        (
            "Segment",
            {"network_type": "vlan", "physical_network": "p"},
            "segmentation_id is needed for the type vlan",
        ),
        (
            "Segment",
            {"network_type": "vlan", "physical_network": "p", "segmentation_id": 4095},
            "segmentation_id is 4094 at most",
        ),
        (
            "Segment",
            {"network_type": "local", "segmentation_id": 5},
            "segmentation_id cannot be given for the type",
        ),
        (
            "Segment",
            {"network_type": "gre", "physical_network": "p"},
            "physical_network cannot be given for the type",
        ),
        (
            "RBACPolicy",
            {"object_type": "qos_policy", "action": "access_as_external"},
            'Invalid action "access_as_external" for object type qos_policy',
        ),
        ("Quota", {}, "at least one of"),
        (
            "NetworkGateway",
            {"connections": [{"network": "n", "segmentation_type": "vlan"}]},
            "segmentation_id is needed",
        ),
        (
            "NetworkGateway",
            {"connections": [{"network": "n", "segmentation_id": 7}]},
            "segmentation_id is 0 at most",
        ),
    ],
)
def test_properties_that_do_not_fit_together_are_refused(name: str, properties: Json, message: str) -> None:
    plugin = plugin_of(name)
    required: Json = {
        "SubnetPool": {"prefixes": ["10.0.0.0/8"]},
        "Segment": {"network": "n"},
        "RBACPolicy": {"object_id": "o", "target_tenant": "t"},
        "Quota": {"project": "p"},
        "NetworkGateway": {"devices": [{"id": "d", "interface_name": "i"}]},
    }
    values = validate_properties(plugin.properties_schema, {**required[name], **properties})
    with pytest.raises(PropertyError, match=message):
        plugin.validate(values)


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("SubnetPool", {"prefixes": ["10.0.0.0/8"], "min_prefixlen": "later", "max_prefixlen": 8}),
        (
            "Segment",
            {"network": "n", "network_type": "vlan", "physical_network": "later", "segmentation_id": "later"},
        ),
        (
            "RBACPolicy",
            {"object_type": "later", "action": "access_as_external", "object_id": "o", "target_tenant": "*"},
        ),
        ("NetworkGateway", {"devices": [{"id": "d", "interface_name": "i"}], "connections": "later"}),
    ],
)
def test_values_that_are_not_known_yet_break_no_rule(name: str, properties: Json) -> None:
    later = {"$fn": "get_resource", "args": ["x"]}
    values = {key: later if value == "later" else value for key, value in properties.items()}
    plugin = plugin_of(name)
    plugin.validate(validate_properties(plugin.properties_schema, values))


LIMIT = plugin_of("QoSBandwidthLimitRule")
RULES = f"/qos/policies/{ONE}/bandwidth_limit_rules"


def has_rules(scripted: ScriptedService, **directions: str) -> None:
    """The policy has these rules, by their ids; a creation is answered with the rule ``new``."""
    rules = [{"id": key, "direction": direction} for key, direction in directions.items()]
    scripted.answers[f"GET {RULES}"] = Answer(200, {"bandwidth_limit_rules": rules})
    scripted.answers[f"POST {RULES}"] = Answer(201, {"bandwidth_limit_rule": {"id": "new"}})


def test_a_rule_of_a_policy_is_found_by_its_direction(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    target = target_of(LIMIT, {"policy": ONE, "max_kbps": 5}, key=KEY)
    has_rules(scripted, other="ingress")
    created = run(LIMIT, "create", target, context)
    assert created.physical_id == "new"
    body = {"max_kbps": 5, "max_burst_kbps": 0, "direction": "egress"}
    assert changes(scripted) == [(f"POST {RULES}", {"bandwidth_limit_rule": body})]
    begun = after(target, LIMIT.handle_create(target, context))
    has_rules(scripted, other="ingress", lost="egress")
    assert LIMIT.find_created(KEY, begun, context) == "lost"


def test_a_rule_whose_policy_is_gone_is_gone(scripted: ScriptedService, context: ScriptedContext) -> None:
    target = target_of(LIMIT, {"policy": ONE, "max_kbps": 5}, key=KEY, data={"before": []})
    assert LIMIT.find_created(KEY, target, context) is None
    rule = dataclasses.replace(target, physical_id="gone")
    assert isinstance(LIMIT.handle_delete(rule, context), Done)


ROUTES = plugin_of("ExtraRouteSet")
ROUTER = f"/routers/{ONE}"


def route(number: int) -> Json:
    return {"destination": f"10.{number}.0.0/16", "nexthop": "10.0.0.9"}


def has_routes(scripted: ScriptedService, *numbers: int) -> None:
    """The router has these routes."""
    router = {"router": {"id": ONE, "routes": [route(number) for number in numbers]}}
    scripted.answers[f"GET {ROUTER}"] = Answer(200, router)
    for verb in ("add", "remove"):
        scripted.answers[f"PUT {ROUTER}/{verb}_extraroutes"] = Answer(200, router)


def routes_of(*numbers: int, **fields: Json) -> typing.Any:
    properties = {"router": ONE, "routes": [route(number) for number in numbers]}
    return target_of(ROUTES, properties, key=KEY, **fields)


def test_routes_of_somebody_else_are_not_taken(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_routes(scripted, 1)
    with pytest.raises(PermanentError, match="Route duplicates an existing route: 10.1.0.0/16"):
        run(ROUTES, "create", routes_of(1, 2), context)
    with pytest.raises(PermanentError, match="Route duplicates"):
        run(ROUTES, "create", routes_of(1), context)
    assert changes(scripted) == []
    target = routes_of(1, physical_id=ONE, previous={"router": ONE, "routes": []})
    with pytest.raises(PermanentError, match="Route duplicates"):
        ROUTES.handle_update(target, frozenset({"routes"}), context)
    repeated = dataclasses.replace(target, attempt=2)
    assert isinstance(ROUTES.handle_update(repeated, frozenset({"routes"}), context), Done)


def test_routes_that_a_lost_call_has_added_are_found(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_routes(scripted)
    target = routes_of(1, 2)
    claimed = ROUTES.handle_create(target, context)
    assert isinstance(claimed, Poll)
    target = dataclasses.replace(after(target, claimed), attempt=2)
    has_routes(scripted, 1, 2, 3)
    step = ROUTES.check_create_complete(target, claimed.progress, context)
    assert isinstance(step, Done)
    assert (step.physical_id, changes(scripted)) == (ONE, [])


def test_an_update_adds_and_removes_only_what_has_changed(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_routes(scripted, 1, 2, 7)
    previous = routes_of(1, 2).properties
    target = routes_of(2, 3, physical_id=ONE, previous=previous, data={REMOTE: {}})
    ROUTES.handle_update(target, frozenset({"routes"}), context)
    assert changes(scripted) == [
        (f"PUT {ROUTER}/remove_extraroutes", {"router": {"routes": [route(1)]}}),
        (f"PUT {ROUTER}/add_extraroutes", {"router": {"routes": [route(3)]}}),
    ]
    assert not ROUTES.needs_replace_failed(target, context)


def test_a_route_is_removed_alone(scripted: ScriptedService, context: ScriptedContext) -> None:
    plugin = plugin_of("ExtraRoute")
    has_routes(scripted, 1, 7)
    target = target_of(
        plugin, {"router_id": ONE, **route(1)}, key=KEY, physical_id=f"{ONE}:x", data={REMOTE: {}}
    )
    run(plugin, "delete", target, context)
    assert changes(scripted) == [(f"PUT {ROUTER}/remove_extraroutes", {"router": {"routes": [route(1)]}})]


def test_a_floating_ip_is_named_by_its_address(scripted: ScriptedService, context: ScriptedContext) -> None:
    plugin = plugin_of("FloatingIPPortForward")
    path = f"/floatingips/{ONE}/port_forwardings"
    address = {"id": ONE, "floating_ip_address": "192.0.2.7"}
    scripted.answers["GET /floatingips?floating_ip_address=192.0.2.7"] = Answer(
        200, {"floatingips": [address]}
    )
    scripted.answers[f"GET {path}"] = Answer(200, {"port_forwardings": []})
    scripted.answers[f"POST {path}"] = Answer(201, {"port_forwarding": {"id": "new"}})
    properties = {
        "floating_ip": "192.0.2.7",
        "internal_port": TWO,
        "internal_port_number": 22,
        "internal_ip_address": "10.0.0.5",
        "external_port": 2222,
        "protocol": "tcp",
    }
    assert run(plugin, "create", target_of(plugin, properties), context).physical_id == "new"
    assert scripted.sent[-1] == {
        "port_forwarding": {
            "internal_port_id": TWO,
            "internal_port": 22,
            "internal_ip_address": "10.0.0.5",
            "external_port": 2222,
            "protocol": "tcp",
        }
    }


def test_an_object_of_a_permission_is_looked_up_by_its_type(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    plugin = plugin_of("RBACPolicy")
    scripted.answers["GET /qos/policies?name=slow"] = Answer(200, {"policies": [{"id": ONE, "name": "slow"}]})
    scripted.answers["GET /rbac-policies"] = Answer(200, {"rbac_policies": []})
    scripted.answers["POST /rbac-policies"] = Answer(201, {"rbac_policy": {"id": "new"}})
    properties = {"object_type": "qos_policy", "object_id": "slow", "action": "access_as_shared"}
    run(plugin, "create", target_of(plugin, {**properties, "target_tenant": "*"}), context)
    assert scripted.sent[-1]["rbac_policy"]["object_id"] == ONE


@pytest.mark.parametrize(
    ("name", "properties", "path", "item", "fields"),
    [
        (
            "FlowClassifier",
            {"protocol": "tcp", "logical_source_port": ONE, "description": "web"},
            "/sfc/flow_classifiers",
            "flow_classifier",
            {"protocol": "tcp", "ethertype": "IPv4", "logical_source_port": ONE},
        ),
        (
            "PortPair",
            {"ingress": ONE, "egress": TWO, "description": "web"},
            "/sfc/port_pairs",
            "port_pair",
            {"ingress": ONE, "egress": TWO, "service_function_parameters": {"correlation": None}},
        ),
        (
            "PortPairGroup",
            {"port_pairs": [ONE, TWO], "description": "web"},
            "/sfc/port_pair_groups",
            "port_pair_group",
            {"port_pairs": [ONE, TWO]},
        ),
        (
            "PortChain",
            {"port_pair_groups": [ONE], "flow_classifiers": [TWO], "description": "web"},
            "/sfc/port_chains",
            "port_chain",
            {
                "port_pair_groups": [ONE],
                "flow_classifiers": [TWO],
                "chain_parameters": {"correlation": "mpls"},
            },
        ),
        (
            "TaaS::TapFlow",
            {"name": "tap", "port": ONE, "tap_service": TWO, "vlan_filter": "7,9-11", "description": "web"},
            "/taas/tap_flows",
            "tap_flow",
            {
                "name": "tap",
                "source_port": ONE,
                "tap_service_id": TWO,
                "direction": "BOTH",
                "vlan_filter": "7,9-11",
            },
        ),
    ],
)
def test_a_thing_is_made_with_the_mark_and_then_described(
    scripted: ScriptedService,
    context: ScriptedContext,
    name: str,
    properties: Json,
    path: str,
    item: str,
    fields: Json,
) -> None:
    plugin = plugin_of(name)
    for request in (f"POST {path}", f"PUT {path}/new", f"GET {path}/new"):
        scripted.answers[request] = Answer(200, {item: {"id": "new"}})
    target = target_of(plugin, properties, key=KEY)
    run(plugin, "create", target, context)
    body = {"name": target.physical_name, **fields, "description": mark_of(KEY)}
    assert changes(scripted) == [
        (f"POST {path}", {item: body}),
        (f"PUT {path}/new", {item: {"description": "web"}}),
    ]


def test_a_tap_service_is_waited_for_until_it_is_there_and_gone(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    plugin = plugin_of("TaaS::TapService")
    path = "/taas/tap_services"

    def has_status(status: str) -> None:
        for request in (f"POST {path}", f"GET {path}/new"):
            scripted.answers[request] = Answer(200, {"tap_service": {"id": "new", "status": status}})

    has_status("PENDING_CREATE")
    target = target_of(plugin, {"port": ONE}, key=KEY)
    step = plugin.handle_create(target, context)
    assert isinstance(step, Poll)
    assert scripted.sent[-1] == {"tap_service": {"name": "", "description": mark_of(KEY), "port_id": ONE}}
    created = after(target, step)
    assert isinstance(plugin.check_create_complete(created, step.progress, context), Poll)
    has_status("ACTIVE")
    assert isinstance(plugin.check_create_complete(created, step.progress, context), Done)
    scripted.answers[f"DELETE {path}/new"] = Answer(204)
    deletion = plugin.handle_delete(created, context)
    assert isinstance(deletion, Poll)
    del scripted.answers[f"GET {path}/new"]
    assert isinstance(plugin.check_delete_complete(created, deletion.progress, context), Done)


def test_a_bridge_and_its_connections(scripted: ScriptedService, context: ScriptedContext) -> None:
    for name, path, item, properties, fields in (
        (
            "L2Gateway",
            "/l2-gateways",
            "l2_gateway",
            {"name": "g", "devices": [{"device_name": "d", "interfaces": [{"name": "eth0"}]}]},
            {"name": "g", "devices": [{"device_name": "d", "interfaces": [{"name": "eth0"}]}]},
        ),
        (
            "L2GatewayConnection",
            "/l2-gateway-connections",
            "l2_gateway_connection",
            {"l2_gateway_id": ONE, "network_id": TWO, "segmentation_id": "7"},
            {"l2_gateway_id": ONE, "network_id": TWO, "segmentation_id": "7"},
        ),
    ):
        plugin = plugin_of(name)
        scripted.answers[f"GET {path}"] = Answer(200, {f"{item}s": []})
        scripted.answers[f"POST {path}"] = Answer(201, {item: {"id": "new"}})
        target = target_of(plugin, properties, key=KEY)
        assert run(plugin, "create", target, context).physical_id == "new"
        assert changes(scripted)[-1] == (f"POST {path}", {item: fields})
        begun = after(target, plugin.handle_create(target, context))
        lost = {"id": "lost", **fields}
        scripted.answers[f"GET {path}"] = Answer(200, {f"{item}s": [lost]})
        assert plugin.find_created(KEY, begun, context) == "lost"


def test_a_gateway_connects_and_disconnects_networks(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    plugin = plugin_of("NetworkGateway")
    path = "/network-gateways"
    vlan = {"network_id": ONE, "segmentation_type": "vlan", "segmentation_id": 7}
    flat = {"network_id": TWO, "segmentation_type": "flat"}

    def has_connections(*connections: Json) -> None:
        gateway = {
            "network_gateway": {
                "id": "new",
                "connections": [{**item, "port_id": "p"} for item in connections],
            }
        }
        for request in (f"POST {path}", f"GET {path}/new"):
            scripted.answers[request] = Answer(200, gateway)

    scripted.answers[f"GET {path}"] = Answer(200, {"network_gateways": []})
    for verb in ("connect", "disconnect"):
        scripted.answers[f"PUT {path}/new/{verb}_network"] = Answer(200, {})
    scripted.answers[f"DELETE {path}/new"] = Answer(204)
    has_connections()
    devices = [{"id": "d", "interface_name": "eth0"}]
    connection = {"network": ONE, "segmentation_type": "vlan", "segmentation_id": 7}
    target = target_of(plugin, {"devices": devices, "connections": [connection]}, key=KEY)
    created = run(plugin, "create", target, context)
    assert changes(scripted)[0][1] == {"network_gateway": {"name": target.physical_name, "devices": devices}}
    assert changes(scripted)[1] == (f"PUT {path}/new/connect_network", vlan)
    has_connections(vlan)
    other = target_of(plugin, {"devices": devices, "connections": [{"network": TWO}]})
    updated = dataclasses.replace(created, properties=other.properties, previous=created.properties)
    plugin.handle_update(updated, frozenset({"connections"}), context)
    assert changes(scripted)[2:] == [
        (f"PUT {path}/new/disconnect_network", vlan),
        (f"PUT {path}/new/connect_network", flat),
    ]
    has_connections(flat)
    run(plugin, "delete", updated, context)
    assert changes(scripted)[4:] == [
        (f"PUT {path}/new/disconnect_network", flat),
        (f"DELETE {path}/new", None),
    ]
    assert plugin.needs_replace(created.properties, {**created.properties, "devices": []})


@pytest.mark.parametrize(
    ("name", "path", "status", "users", "noun"),
    [
        ("SubnetPool", "/subnetpools", 400, "subnets", "subnet"),
        ("AddressScope", "/address-scopes", 409, "subnetpools", "subnet pool"),
    ],
)
def test_what_uses_a_pool_or_a_scope_is_named_while_it_stays(
    scripted: ScriptedService,
    context: ScriptedContext,
    name: str,
    path: str,
    status: int,
    users: str,
    noun: str,
) -> None:
    plugin = plugin_of(name)
    properties = {"prefixes": ["10.0.0.0/8"]} if name == "SubnetPool" else {}
    target = dataclasses.replace(target_of(plugin, properties, key=KEY), physical_id=ONE)
    scripted.answers[f"DELETE {path}/{ONE}"] = Answer(status, {"NeutronError": {"message": "no"}})
    user = {"id": TWO, "project_id": target.stack.project_id}
    scripted.answers[f"GET /{users}"] = Answer(body={users: [user]})
    with pytest.raises(RetryableError, match=f"still in use by {noun} {TWO}: network {status}: no"):
        plugin.handle_delete(target, context)
    # An administrator has made the stack, and sees what the readers of its reasons may not see.
    scripted.answers[f"GET /{users}"] = Answer(body={users: [{"id": "x", "project_id": "o"}, user]})
    with pytest.raises(RetryableError, match=f"still in use by 1 {noun} of other projects, {noun} {TWO}: "):
        plugin.handle_delete(target, context)
    scripted.answers[f"GET /{users}"] = Answer(body={users: []})
    expected = PermanentError if status == 400 else RetryableError
    with pytest.raises(expected, match=f"network {status}: no"):
        plugin.handle_delete(target, context)


def test_the_servers_and_routers_of_others_are_not_named(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    plugin = plugin_of("Net")
    target = dataclasses.replace(target_of(plugin, key=KEY), physical_id=ONE)
    server = {"id": "p", "device_id": "s", "device_owner": "compute:nova", "project_id": ""}
    dhcp = {"id": "d", "device_owner": "network:dhcp", "project_id": target.stack.project_id}
    scripted.answers[f"DELETE /networks/{ONE}"] = Answer(409, {"NeutronError": {"message": "no"}})
    scripted.answers["GET /ports"] = Answer(body={"ports": [server, {**server, "project_id": "o"}, dhcp]})
    with pytest.raises(RetryableError, match="still in use by 2 ports of other projects: network 409: no"):
        plugin.handle_delete(target, context)


def test_a_pool_that_nobody_may_delete_is_not_waited_for(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    plugin = plugin_of("SubnetPool")
    target = dataclasses.replace(target_of(plugin, {"prefixes": ["10.0.0.0/8"]}, key=KEY), physical_id=ONE)
    scripted.answers[f"DELETE /subnetpools/{ONE}"] = Answer(403, {"NeutronError": {"message": "no"}})
    scripted.answers["GET /subnets"] = Answer(body={"subnets": [{"id": TWO}]})
    with pytest.raises(PermanentError, match="network 403: no"):
        plugin.handle_delete(target, context)


NET = plugin_of("Net")
REFUSAL = "Quota exceeded for resources: ['network']."


def refuse_for_a_quota(scripted: ScriptedService, numbers: Answer) -> str:
    """The text of the error of a creation that the service refuses; it answers for the quota with these."""
    error = {"NeutronError": {"type": "OverQuota", "message": REFUSAL, "detail": ""}}
    scripted.answers["POST /networks"] = Answer(409, error)
    target = target_of(NET)
    scripted.answers[f"GET /quotas/{target.stack.project_id}/details"] = numbers
    with pytest.raises(OverQuota) as refused:
        run(NET, "create", target, ScriptedContext(scripted))
    assert refused.value.after == QUOTA_PAUSE
    return str(refused.value)


def test_a_refusal_for_a_quota_has_its_numbers(scripted: ScriptedService) -> None:
    numbers = {"network": {"limit": 10, "used": 9, "reserved": 1}, "port": {"limit": 5, "used": 1}}
    text = refuse_for_a_quota(scripted, Answer(200, {"quota": numbers}))
    assert text == f"over the quota: network 409: {REFUSAL} [req-1] (network: 10 of 10 in use)"


@pytest.mark.parametrize("answer", [Answer(403), Answer(503), Answer(200, {"quota": []}), Answer(200, {})])
def test_a_refusal_for_a_quota_stays_without_its_numbers(scripted: ScriptedService, answer: Answer) -> None:
    assert refuse_for_a_quota(scripted, answer) == f"over the quota: network 409: {REFUSAL} [req-1]"


PORT = plugin_of("Port")


def refuse_an_address(scripted: ScriptedService, answer: Answer) -> str:
    """The text of the error of a port whose address is taken; this is the list of the ports that have it."""
    scripted.answers["POST /ports"] = Answer(409, {"NeutronError": {"message": "already allocated"}})
    target = target_of(PORT, {"network": ONE, "fixed_ips": [{"ip_address": "10.0.0.7"}]})
    scripted.answers[f"GET /ports?description={mark_of(KEY)}"] = Answer(200, {"ports": []})
    project = target.stack.project_id
    query = urllib.parse.urlencode(
        {"fixed_ips": "ip_address=10.0.0.7", "network_id": ONE, "project_id": project}
    )
    scripted.answers[f"GET /ports?{query}"] = answer
    with pytest.raises(Conflict) as refused:
        run(PORT, "create", target, ScriptedContext(scripted))
    assert refused.value.kind == "Conflict"
    return str(refused.value).replace(" [req-1]", "")


def test_a_refusal_of_an_address_says_who_has_it(scripted: ScriptedService) -> None:
    user = {"id": TWO, "device_owner": "compute:nova", "device_id": "s"}
    text = refuse_an_address(scripted, Answer(200, {"ports": [user]}))
    assert text == f"network 409: already allocated (10.0.0.7 is that of server s (port {TWO}))"


@pytest.mark.parametrize("answer", [Answer(200, {"ports": []}), Answer(503), Answer(403)])
def test_a_refusal_of_an_address_that_others_have_stays_as_it_is(
    scripted: ScriptedService, answer: Answer
) -> None:
    assert refuse_an_address(scripted, answer) == "network 409: already allocated"
