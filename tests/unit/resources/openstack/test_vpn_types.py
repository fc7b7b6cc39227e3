"""Types of VPNs on scripted answers of the network service."""

import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.marks import mark_of

RESOURCE_TYPES = types_of("openstack.neutron")

Json = typing.Any
ROUTER, SUBNET = (f"{number}1111111-2222-4333-8444-555555555555" for number in (1, 2))
SERVICE = RESOURCE_TYPES["OS::Neutron::VPNService"]()
CONNECTION = RESOURCE_TYPES["OS::Neutron::IPsecSiteConnection"]()
IKE = RESOURCE_TYPES["OS::Neutron::IKEPolicy"]()
IPSEC = RESOURCE_TYPES["OS::Neutron::IPsecPolicy"]()
SITE = {
    "peer_address": "192.0.2.1",
    "peer_id": "192.0.2.1",
    "peer_cidrs": ["10.9.0.0/24"],
    "psk": "hush",
    "ikepolicy_id": "i",
    "ipsecpolicy_id": "p",
    "vpnservice_id": "v",
    "dpd": {"interval": 10},
}
PATH = "/vpn/ipsec-site-connections"


@pytest.mark.parametrize(
    ("plugin", "path", "item", "properties", "fields"),
    [
        (
            SERVICE,
            "/vpn/vpnservices",
            "vpnservice",
            {"router": ROUTER, "subnet": SUBNET},
            {"router_id": ROUTER, "subnet_id": SUBNET, "admin_state_up": True},
        ),
        (
            IKE,
            "/vpn/ikepolicies",
            "ikepolicy",
            {"lifetime": {"value": 60}},
            {
                "auth_algorithm": "sha1",
                "encryption_algorithm": "aes-128",
                "phase1_negotiation_mode": "main",
                "lifetime": {"units": "seconds", "value": 60},
                "pfs": "group5",
                "ike_version": "v1",
            },
        ),
        (
            IPSEC,
            "/vpn/ipsecpolicies",
            "ipsecpolicy",
            {},
            {
                "transform_protocol": "esp",
                "encapsulation_mode": "tunnel",
                "auth_algorithm": "sha1",
                "encryption_algorithm": "aes-128",
                "pfs": "group5",
            },
        ),
    ],
)
def test_creations(
    scripted: ScriptedService,
    context: ScriptedContext,
    plugin: ResourceType,
    path: str,
    item: str,
    properties: Json,
    fields: Json,
) -> None:
    """A VPN service is complete before a connection makes it active."""
    scripted.answers[f"POST {path}"] = Answer(201, {item: {"id": "x", "status": "PENDING_CREATE"}})
    target = run(plugin, "create", target_of(plugin, properties), context)
    [body] = [each for each in scripted.sent if each]
    usual = {"name": target.physical_name, "description": mark_of(target.key)}
    assert body == {item: {**usual, **fields}}


def test_a_connection_is_waited_for(scripted: ScriptedService, context: ScriptedContext) -> None:
    answer = {"id": "c", "status": "PENDING_CREATE", "psk": "hush"}
    scripted.answers[f"POST {PATH}"] = Answer(201, {"ipsec_site_connection": answer})
    scripted.answers[f"GET {PATH}/c"] = Answer(200, {"ipsec_site_connection": {**answer, "status": "ACTIVE"}})
    target = target_of(CONNECTION, SITE)
    assert isinstance(CONNECTION.handle_create(target, context), Poll)
    target = run(CONNECTION, "create", target, context)
    body = next(each for each in scripted.sent if each)["ipsec_site_connection"]
    assert body["dpd"] == {"actions": "hold", "interval": 10, "timeout": 120}
    assert (body["psk"], body["mtu"]) == ("hush", 1500)
    assert CONNECTION.attributes_schema["psk"].sensitive, "so the stored answer is sealed"
    assert CONNECTION.properties_schema["psk"].sensitive
    scripted.answers[f"GET {PATH}/c"] = Answer(200, {"ipsec_site_connection": {**answer, "status": "ERROR"}})
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        run(CONNECTION, "create", target_of(CONNECTION, SITE), context)
