"""Services that carry each change out after its caller has stopped waiting and repeats it."""

import pathlib
import typing

import pytest
from cloud.chaos import FaultyCloud
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.site import IMAGE
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.fault_proxy import LateProxy
from harness.tested_types import WITHOUT_SERVICE
from stoker.resources.registry import ResourceRegistry

Json = typing.Any
SERVICES = ("OS::Cinder::", "OS::Neutron::", "OS::Nova::")


CINDER_OF_OPERATORS = ("EncryptedVolumeType", "QoSAssociation", "QoSSpecs", "Quota", "VolumeType")
NOVA_OF_OPERATORS = ("Flavor", "HostAggregate", "Quota")
NEUTRON_OF_OPERATORS = (
    *("MeteringLabel", "MeteringRule", "ProviderNet", "QoSBandwidthLimitRule", "QoSDscpMarkingRule"),
    *("QoSMinimumBandwidthRule", "QoSMinimumPacketRateRule", "QoSPolicy", "Quota", "Segment"),
)
OPERATORS = {
    *(f"OS::Cinder::{name}" for name in CINDER_OF_OPERATORS),
    *(f"OS::Nova::{name}" for name in NOVA_OF_OPERATORS),
    *(f"OS::Neutron::{name}" for name in NEUTRON_OF_OPERATORS),
    *WITHOUT_SERVICE,
    "OS::Neutron::Trunk",  # As a Net with one more call; its parent port cannot be a server's here.
}
"""Types that this test leaves out."""
WITHIN = 900.0
"""Seconds for an action whose every call is repeated."""


def resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def ref(name: str) -> Json:
    return {"get_resource": name}


TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "net": resource("Neutron::Net", tags=["blue"]),
        "subnet": resource("Neutron::Subnet", network=ref("net"), cidr="10.44.0.0/24"),
        "router": resource("Neutron::Router", external_gateway_info={"network": "public"}),
        "interface": resource("Neutron::RouterInterface", router=ref("router"), subnet=ref("subnet")),
        "group": resource("Neutron::SecurityGroup", rules=[{"protocol": "icmp"}]),
        "rule": resource("Neutron::SecurityGroupRule", security_group=ref("group"), protocol="udp"),
        "port": resource("Neutron::Port", network=ref("net"), security_groups=[ref("group")]),
        "address": resource("Neutron::FloatingIP", floating_network="public"),
        "association": resource(
            "Neutron::FloatingIPAssociation", floatingip_id=ref("address"), port_id=ref("port")
        ),
        "route": resource(
            "Neutron::ExtraRoute", router_id=ref("router"), destination="10.90.0.0/24", nexthop="10.44.0.9"
        ),
        "routes": resource(
            "Neutron::ExtraRouteSet",
            router=ref("router"),
            routes=[{"destination": "10.91.0.0/24", "nexthop": "10.44.0.9"}],
        ),
        "scope": resource("Neutron::AddressScope"),
        "pool": resource("Neutron::SubnetPool", prefixes=["10.92.0.0/16"], address_scope=ref("scope")),
        "permission": resource(
            "Neutron::RBACPolicy",
            object_type="network",
            object_id=ref("net"),
            action="access_as_shared",
            target_tenant="00000000-0000-4000-8000-000000000001",
        ),
        "second address": resource("Neutron::FloatingIP", floating_network="public"),
        "inner port": resource("Neutron::Port", network=ref("net")),
        "forwarding": resource(
            "Neutron::FloatingIPPortForward",
            floating_ip=ref("second address"),
            internal_port=ref("inner port"),
            internal_ip_address={"get_attr": ["inner port", "fixed_ips", 0, "ip_address"]},
            internal_port_number=22,
            external_port=2222,
            protocol="tcp",
        ),
        "pair": resource("Nova::KeyPair", name="late-pair"),
        "servers": resource("Nova::ServerGroup", policies=["anti-affinity"]),
        "server": resource(
            "Nova::Server",
            image=IMAGE,
            flavor="m1.tiny",
            key_name=ref("pair"),
            scheduler_hints={"group": ref("servers")},
            networks=[{"port": ref("port")}],
        ),
        "volume": resource("Cinder::Volume", size=1),
        "disk": resource("Cinder::VolumeAttachment", instance_uuid=ref("server"), volume_id=ref("volume")),
    },
}


@pytest.mark.timeout(0)  # Each of its waits has a limit of its own.
def test_changes_that_are_carried_out_late_are_made_once(
    tmp_path: pathlib.Path, cloud: Cloud, project: Project
) -> None:
    types = {item["type"] for item in TEMPLATE["resources"].values()}
    names = {name for name in ResourceRegistry.installed().names() if name.startswith(SERVICES)}
    assert types | (OPERATORS & names) == names
    late = FaultyCloud(cloud, size=1, make_proxy=lambda url, _, hangs: LateProxy(url, hangs=hangs))
    try:
        with stoker_on(cloud, tmp_path, late.options().removeprefix(cloud.stoker_options())) as service:
            stacks = Stacks(service, project, within=WITHIN)
            with late.faults():
                stack = stacks.create("late", TEMPLATE)
                stack.delete()
            assert late.counts()["LATE"] >= 2 * len(types)
            assert project.leftovers() == {}
    finally:
        late.close()
