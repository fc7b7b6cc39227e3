"""Floating IPs under the names of CloudFormation, on scripted answers of the network and compute services."""

import dataclasses
import typing

import pytest
from harness.fake_context import after, run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.steps import Done
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.marks import mark_of

RESOURCE_TYPES = types_of("openstack.neutron")

Json = typing.Any
ADDRESS = RESOURCE_TYPES["AWS::EC2::EIP"]()
ASSOCIATION = RESOURCE_TYPES["AWS::EC2::EIPAssociation"]()
PORT_ASSOCIATION = RESOURCE_TYPES["OS::Neutron::FloatingIPAssociation"]()
FLOATING_IP = {"id": "7d1cd1b0-0000-4000-8000-000000000001", "floating_ip_address": "172.24.0.9"}
PATH = f"/floatingips/{FLOATING_IP['id']}"
PORT = {"id": "p1", "network_id": "n1", "fixed_ips": [{"ip_address": "10.0.0.3"}]}
TO_PORT = {"port_id": "p1", "fixed_ip_address": "10.0.0.3"}


def has_cloud(scripted: ScriptedService, *, externals: int = 1) -> None:
    """A server s with one port, a floating IP that leads nowhere, and a VPC with a router."""
    networks = [{"id": f"external{number}"} for number in range(externals)]
    interface = {"port_id": "p1", "fixed_ips": PORT["fixed_ips"]}
    free = {**FLOATING_IP, "port_id": None, "floating_network_id": "external0"}
    scripted.answers |= {
        "GET /networks?router%3Aexternal=True": Answer(200, {"networks": networks}),
        "GET /servers/s/os-interface": Answer(200, {"interfaceAttachments": [interface]}),
        "GET /servers/bare/os-interface": Answer(200, {"interfaceAttachments": []}),
        "POST /floatingips": Answer(201, {"floatingip": FLOATING_IP}),
        "GET /floatingips": Answer(200, {"floatingips": [free]}),
        f"GET {PATH}": Answer(200, {"floatingip": free}),
        f"PUT {PATH}": Answer(200, {"floatingip": {**FLOATING_IP, **TO_PORT}}),
        "GET /ports/p1": Answer(200, {"port": PORT}),
        "GET /networks/n1": Answer(200, {"network": {"id": "n1", "name": "vpc"}}),
        "GET /routers?name=vpc": Answer(200, {"routers": [{"id": "r1"}]}),
        "PUT /routers/r1": Answer(200, {"router": {}}),
    }


def sent(scripted: ScriptedService, method: str) -> list[tuple[str, Json]]:
    requests = zip(scripted.requests, scripted.sent, strict=True)
    return [(line.split()[1], body) for line, body in requests if line.startswith(method)]


def test_an_address_leads_to_the_first_port_of_its_server(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cloud(scripted)
    target = target_of(ADDRESS, {"InstanceId": "s"})
    target = run(ADDRESS, "create", target, context)
    [(_, body)] = sent(scripted, "POST")
    description = mark_of(target.key)
    assert body == {"floatingip": {"description": description, "floating_network_id": "external0", **TO_PORT}}
    assert ADDRESS.reference_id(target) == "172.24.0.9"
    assert ADDRESS.attribute_values(target)["AllocationId"] == FLOATING_IP["id"]

    target = target_of(ADDRESS, physical_id=target.physical_id, data=target.data)
    run(ADDRESS, "update", target, context, changed=frozenset({"InstanceId"}))
    assert sent(scripted, "PUT") == [(PATH, {"floatingip": {"port_id": None}})]


@pytest.mark.parametrize(
    ("server", "externals", "why"),
    [(None, 2, "Expected 1 external network, found 2"), ("bare", 1, "No network interface found for server")],
)
def test_an_address_needs_one_external_network_and_a_port(
    scripted: ScriptedService, context: ScriptedContext, server: str | None, externals: int, why: str
) -> None:
    has_cloud(scripted, externals=externals)
    with pytest.raises(PermanentError, match=why):
        ADDRESS.handle_create(target_of(ADDRESS, {"InstanceId": server} if server else {}), context)
    assert sent(scripted, "POST") == []


def test_an_association_by_id_gives_the_router_of_the_vpc_its_way_out(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cloud(scripted)
    properties = {"AllocationId": FLOATING_IP["id"], "NetworkInterfaceId": "p1"}
    target = run(ASSOCIATION, "create", target_of(ASSOCIATION, properties), context)
    gateway = {"router": {"external_gateway_info": {"network_id": "external0"}}}
    assert sent(scripted, "PUT") == [("/routers/r1", gateway), (PATH, {"floatingip": TO_PORT})]
    assert target.physical_id == FLOATING_IP["id"]


def test_an_association_by_address_is_found_by_it_also_where_heat_has_made_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cloud(scripted)
    target = target_of(ASSOCIATION, {"EIP": "172.24.0.9", "InstanceId": "s"})
    target = run(ASSOCIATION, "create", target, context)
    assert sent(scripted, "PUT") == [(PATH, {"floatingip": TO_PORT})]
    assert "GET /floatingips?floating_ip_address=172.24.0.9" in scripted.requests

    scripted.answers[f"GET {PATH}"] = Answer(200, {"floatingip": {**FLOATING_IP, **TO_PORT}})
    of_heat = target_of(ASSOCIATION, target.properties, physical_id="172.24.0.9")
    run(ASSOCIATION, "delete", of_heat, context)
    assert sent(scripted, "PUT")[1:] == [(PATH, {"floatingip": {"port_id": None}})]
    scripted.answers["GET /floatingips"] = Answer(200, {"floatingips": []})
    run(ASSOCIATION, "delete", of_heat, context)
    assert len(sent(scripted, "PUT")) == 2


def test_an_association_of_neutrons_is_found_by_its_properties_where_heat_has_made_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cloud(scripted)
    scripted.answers[f"GET {PATH}"] = Answer(200, {"floatingip": {**FLOATING_IP, **TO_PORT}})
    scripted.answers["GET /ports"] = Answer(200, {"ports": [{**PORT, "name": "front"}]})
    properties = {"floatingip_id": FLOATING_IP["id"], "port_id": "front"}
    of_heat = target_of(PORT_ASSOCIATION, properties, physical_id="7")
    run(PORT_ASSOCIATION, "check", of_heat, context)
    assert PORT_ASSOCIATION.live_properties(of_heat, context)["port_id"] == "p1"
    run(PORT_ASSOCIATION, "delete", of_heat, context)
    assert sent(scripted, "PUT") == [(PATH, {"floatingip": {"port_id": None}})]


def test_an_association_leaves_its_address_before_it_takes_another(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cloud(scripted)
    scripted.answers[f"GET {PATH}"] = Answer(200, {"floatingip": {**FLOATING_IP, **TO_PORT}})
    properties = {"EIP": "172.24.0.9", "InstanceId": "s"}
    target = target_of(ASSOCIATION, properties)
    target = after(target, Done(physical_id=FLOATING_IP["id"], data={REMOTE: {**FLOATING_IP, **TO_PORT}}))
    target = dataclasses.replace(target, properties={**target.properties, "EIP": "172.24.0.10"})
    run(ASSOCIATION, "update", target, context, changed=frozenset({"EIP"}))
    bodies = [body["floatingip"] for line, body in sent(scripted, "PUT") if line == PATH]
    assert bodies == [{"port_id": None}, TO_PORT]


@pytest.mark.parametrize(
    ("changes", "is_replaced"),
    [
        ({"EIP": "172.24.0.10"}, False),
        ({"InstanceId": "t"}, False),
        ({"EIP": "172.24.0.10", "InstanceId": "t"}, True),
    ],
)
def test_an_association_is_replaced_where_both_ends_change(changes: Json, *, is_replaced: bool) -> None:
    before = resolve_properties(ASSOCIATION.properties_schema, {"EIP": "172.24.0.9", "InstanceId": "s"})
    assert ASSOCIATION.needs_replace(before, {**before, **changes}) is is_replaced


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"InstanceId": "s"}, "Either 'EIP' or 'AllocationId'"),
        ({"EIP": "172.24.0.9", "AllocationId": "a", "InstanceId": "s"}, "Either 'EIP' or 'AllocationId'"),
        ({"EIP": "172.24.0.9", "NetworkInterfaceId": "p"}, "Must specify 'InstanceId'"),
        ({"AllocationId": "a"}, "InstanceId, NetworkInterfaceId"),
    ],
)
def test_wrong_associations(properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        ASSOCIATION.validate(resolve_properties(ASSOCIATION.properties_schema, properties))
