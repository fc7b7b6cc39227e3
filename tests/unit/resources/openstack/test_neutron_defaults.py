"""Properties that a template gives no more: the things get what Neutron gives to new ones."""

import dataclasses

import pytest
from harness.fake_context import FakeContext, target_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, serving
from stoker.resources.openstack.neutron.port import Port
from stoker.resources.openstack.neutron.subnet import Subnet, default_pools

NET = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("cidr", "gateway", "pools"),
    [
        ("10.0.0.0/24", "10.0.0.1", "10.0.0.2-10.0.0.254"),
        ("10.0.0.0/24", "10.0.0.254", "10.0.0.1-10.0.0.253"),
        ("10.0.0.0/24", "10.0.0.9", "10.0.0.1-10.0.0.8 10.0.0.10-10.0.0.254"),
        ("10.0.0.0/24", None, "10.0.0.1-10.0.0.254"),
        ("10.0.0.0/24", "10.9.9.9", "10.0.0.1-10.0.0.254"),
        ("10.0.0.0/31", None, "10.0.0.0-10.0.0.1"),
        ("fd00::/64", "fd00::1", "fd00::2-fd00::ffff:ffff:ffff:ffff"),
    ],
)
def test_pools_are_those_of_a_new_subnet(cidr: str, gateway: str | None, pools: str) -> None:
    computed = default_pools(cidr, gateway)
    assert " ".join(f"{pool['start']}-{pool['end']}" for pool in computed) == pools


def test_a_subnet_gets_the_default_gateway_and_pools_back() -> None:
    thing = {"cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.9"}
    target = target_of(
        Subnet(), {"network": NET, "cidr": "10.0.0.0/24"}, physical_id="s", data={"thing": thing}
    )
    body = Subnet().update_body(target, {"gateway_ip", "allocation_pools"}, FakeContext())
    assert body == {
        "gateway_ip": "10.0.0.1",
        "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}],
    }
    without = dataclasses.replace(target, properties={**target.properties, "gateway_ip": ""})
    assert Subnet().update_body(without, {"gateway_ip"}, FakeContext()) == {"gateway_ip": None}


@pytest.mark.parametrize("setting", [True, False])
def test_a_port_gets_the_setting_of_its_network_back(*, setting: bool) -> None:
    with serving() as scripted:
        network = {"id": NET, "port_security_enabled": setting}
        scripted.answers[f"GET /networks/{NET}"] = Answer(200, {"network": network})
        target = target_of(Port(), {"network": NET}, physical_id="p")
        body = Port().update_body(target, {"port_security_enabled"}, ScriptedContext(scripted))
        assert body == {"port_security_enabled": setting}


def test_a_name_that_is_given_no_more_becomes_the_one_of_the_creation() -> None:
    created = target_of(Port(), {"network": NET}, key="aaaaaaaa-1111")
    name = Port().create_body(created, FakeContext())["name"]
    updated = dataclasses.replace(created, key="bbbbbbbb-2222", creation_key=created.key, physical_id="p")
    assert Port().update_body(updated, {"name"}, FakeContext()) == {"name": name}
