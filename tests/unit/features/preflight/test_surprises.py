"""Losses of an update, users of things that it deletes, and the copies that it keeps, are said."""

import dataclasses
import types
import typing

import pytest
from harness.known_cloud import KnownCloud, quotas
from stoker.db.ids import StackId
from stoker.db.rows import Resource
from stoker.features.preflight import check
from stoker.features.preflight.check import CloudPreflight
from stoker.features.preflight.findings import FindingKind, obstacles
from stoker.features.preflight.planned import PlannedPart, parts_of_update, stacks_to_read
from stoker.features.preflight.quota import find_exceeded
from stoker.features.preflight.surprises import find_surprises
from stoker.features.preview.plan import ChangeKind, NestedChanges, ResourceChange
from stoker.resources.contract.known_stack import KnownStack
from stoker.resources.contract.preflight import PlannedStack
from stoker.template.errors import LimitExceeded
from unit.features.preflight.test_fits import a_row
from unit.features.preflight.test_quota import CINDER, REGISTRY

Json = typing.Any
OWN = frozenset({"old", "server", "port", "balancer", "own", "old:subnet_id=s1", "old:port_id=i2"})
INTERFACE = {"device_id": "old", "device_owner": "network:router_interface"}
CLOUD = KnownCloud(
    {
        "block-storage /snapshots": [{"id": "x1", "volume_id": "old"}, {"id": "x2", "volume_id": "other"}],
        "block-storage /volumes/detail": [
            {"id": "old", "attachments": [{"server_id": "server"}]},
            {"id": "other", "attachments": [{"server_id": "foreign"}]},
        ],
        "network /subnets": [
            {"id": "own", "subnetpool_id": "old"},
            {"id": "theirs", "subnetpool_id": "old"},
            {"id": "apart", "subnetpool_id": None},
        ],
        "network /subnetpools": [
            {"id": "own", "address_scope_id": "old"},
            {"id": "p", "address_scope_id": "old"},
        ],
        "network /ports": [
            *(
                {"network_id": "old", "security_groups": ["old"], "fixed_ips": [{"subnet_id": "old"}], **port}
                for port in (
                    {"id": "p1", "device_id": "foreign"},
                    {"id": "p2", "device_id": "server"},
                    {"id": "port", "device_id": ""},
                    {"id": "p3", "device_id": "d", "device_owner": "network:dhcp"},
                    {"id": "p5", "device_id": "lb-balancer", "device_owner": "Octavia"},
                    {"id": "p6", "device_id": "amphora", "name": "octavia-lb-vrrp-1"},
                    {"id": "p7", "device_id": "share-server", "device_owner": "manila:share"},
                    {"id": "p8", "device_id": "r", "device_owner": "network:router_centralized_snat"},
                )
            ),
            {"id": "p4", "network_id": "other", "device_id": "foreign", "fixed_ips": None},
            {"id": "i1", **INTERFACE, "fixed_ips": [{"subnet_id": "s1"}]},
            {"id": "i2", **INTERFACE, "fixed_ips": [{"subnet_id": "s2"}]},
            {"id": "i3", **INTERFACE, "fixed_ips": [{"subnet_id": "own"}]},
            {"id": "i4", **INTERFACE, "fixed_ips": [{"subnet_id": "s4"}]},
            {"id": "i5", "device_id": "old", "device_owner": "network:router_gateway"},
        ],
    }
)


def surprises(type_name: str, cloud: KnownCloud, *, replaced: bool = False) -> list[str]:
    """The messages for a thing of the type that is replaced, or deleted."""
    stack = PlannedStack(KnownStack({}), replaced=frozenset({"a"} if replaced else ()), own=OWN)
    part = PlannedPart((), stack, {}, gone={"a": (REGISTRY.get(type_name), "old")})
    findings = list(find_surprises([part], cloud))
    assert {(finding.kind, finding.path) for finding in findings} <= {
        (FindingKind.SURPRISE, ("resources", "a"))
    }
    assert obstacles(findings) == []
    return [finding.message for finding in findings]


@pytest.mark.parametrize(
    ("type_name", "message"),
    [
        ("OS::Cinder::Volume", "it is replaced, and its data go with it"),
        ("OS::Neutron::FloatingIP", "it is replaced, and its address goes with it"),
        ("OS::Manila::Share", "it is replaced, and its data go with it"),
        (
            "OS::Nova::Server",
            "it is replaced, and its local disks and the addresses of its new ports go with it",
        ),
    ],
)
def test_what_is_lost_with_a_replaced_thing_is_said(type_name: str, message: str) -> None:
    assert surprises(type_name, KnownCloud({}), replaced=True) == [message]
    assert surprises(type_name, KnownCloud({})) == []


@pytest.mark.parametrize(
    ("type_name", "user"),
    [
        ("OS::Cinder::Volume", "the snapshot x1"),
        ("OS::Neutron::SecurityGroup", "the port p1"),
        ("OS::Neutron::Net", "the port p1"),
        ("OS::Neutron::ProviderNet", "the port p1"),
        ("OS::Neutron::Subnet", "the port p1"),
        ("OS::Neutron::Router", "the port i4"),
        ("OS::Neutron::SubnetPool", "the subnet theirs"),
        ("OS::Neutron::AddressScope", "the subnet pool p"),
    ],
)
def test_who_uses_a_deleted_thing_outside_of_the_stack_is_named(type_name: str, user: str) -> None:
    assert surprises(type_name, CLOUD) == [f"it is deleted, but in use outside of the stack by {user}"]


@pytest.mark.parametrize("type_name", ["AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::RouteTable"])
def test_of_a_vpc_nobody_knows_the_stacks_own_ports(type_name: str) -> None:
    assert surprises(type_name, CLOUD) == []


def deleted(type_name: str, cloud: KnownCloud, own: tuple[str, str]) -> list[str]:
    """The messages for the thing old, which is deleted from a stack that has one other thing of a type."""
    changes = [
        ResourceChange("a", ChangeKind.DELETED, row=a_deleted(type_name, "old")),
        ResourceChange("b", ChangeKind.UNCHANGED, row=a_row("b", *own)),
    ]
    return [finding.message for finding in find_surprises(list(parts_of_update(changes, REGISTRY)), cloud)]


OTHER = ("OS::Nova::Server", "another")
ATTACHMENTS = ("OS::Cinder::VolumeAttachment", "AWS::EC2::VolumeAttachment")


@pytest.mark.parametrize(("own", "named"), [(OTHER, True), *(((kind, "old"), False) for kind in ATTACHMENTS)])
def test_a_server_that_has_a_deleted_volume_is_named_unless_the_stack_attaches_it(
    own: tuple[str, str], named: bool
) -> None:
    cloud = KnownCloud(
        {"block-storage /volumes/detail": [{"id": "old", "attachments": [{"server_id": "x"}]}]}
    )
    texts = ["it is deleted, but in use outside of the stack by the server x"]
    assert deleted("OS::Cinder::Volume", cloud, own) == (texts if named else [])


@pytest.mark.parametrize(
    "owner",
    [f"network:{name}" for name in ("router_interface_distributed", "ha_router_replicated_interface")],
)
@pytest.mark.parametrize("type_name", ["OS::Neutron::Net", "OS::Neutron::Subnet"])
@pytest.mark.parametrize(
    ("link", "named"), [("port_id=i", False), ("subnet_id=old", False), ("port_id=o", True)]
)
def test_an_interface_of_a_foreign_router_is_named_unless_the_stack_has_made_it(
    type_name: str, owner: str, link: str, named: bool
) -> None:
    port = {"id": "i", "network_id": "old", "fixed_ips": [{"subnet_id": "old"}]}
    cloud = KnownCloud({"network /ports": [{**port, "device_id": "r", "device_owner": owner}]})
    texts = ["it is deleted, but in use outside of the stack by the router r (port i)"]
    own = ("OS::Neutron::RouterInterface", f"r:{link}")
    assert deleted(type_name, cloud, own) == (texts if named else [])


@pytest.mark.parametrize(
    ("policy", "status", "exceeded"),
    [
        ("Snapshot", "COMPLETE", ["backups", "backup_gigabytes"]),
        ("Snapshot", "FAILED", []),
        ("Delete", "COMPLETE", []),
        ("Retain", "COMPLETE", []),
    ],
)
def test_the_copy_of_a_deleted_volume_counts(policy: str, status: str, exceeded: list[str]) -> None:
    row = dataclasses.replace(
        a_row("v", "OS::Cinder::Volume", "old"),
        properties={"size": 5},
        definition={"deletion_policy": policy},
        status=status,
    )
    parts = list(parts_of_update([ResourceChange("v", ChangeKind.DELETED, row=row)], REGISTRY))
    limits = {CINDER: quotas(backups=0, backup_gigabytes=4)}
    messages = [finding.message for finding in find_exceeded(parts, KnownCloud(limits))]
    assert [message.split(" ")[1] for message in messages] == exceeded


def test_what_a_nested_stack_has_is_the_stacks_own_also_where_its_changes_are_not_known() -> None:
    inside = [NestedChanges(StackId("n"), "s-group", None)]
    changes = [
        ResourceChange("a", ChangeKind.DELETED, row=a_deleted("OS::Neutron::Net", "old")),
        ResourceChange("group", ChangeKind.UPDATED, inside=inside),
    ]
    assert stacks_to_read(changes) == ["n"]
    assert stacks_to_read(changes[1:]) == []
    parts = list(parts_of_update(changes, REGISTRY, OWN | {"foreign"}))
    assert list(find_surprises(parts, CLOUD)) == []
    alone = list(parts_of_update(changes[:1], REGISTRY))
    assert "the port p1" in [finding.message for finding in find_surprises(alone, CLOUD)][0]


def a_deleted(type_name: str, physical_id: str) -> Resource:
    """The resource a as it is stored."""
    return dataclasses.replace(a_row("a", type_name, physical_id), properties={})


def test_a_tree_too_large_for_a_preview_is_said_to_be_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Json, **fields: Json) -> typing.NoReturn:
        raise LimitExceeded("too large")

    monkeypatch.setattr(check, "changes_of_compiled", refuse)
    nothing: Json = types.SimpleNamespace(converge=False)
    [finding] = CloudPreflight(nothing, nothing).of_goal(nothing, nothing, nothing, nothing)
    assert (finding.kind, finding.message) == (FindingKind.NOT_CHECKED, "not checked: too large")
