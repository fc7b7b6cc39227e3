"""Losses of an update, and users of things that it deletes, are said."""

import pytest
from harness.known_cloud import KnownCloud
from stoker.features.preflight.findings import FindingKind, obstacles
from stoker.features.preflight.planned import PlannedPart
from stoker.features.preflight.surprises import find_surprises
from stoker.resources.contract.known_stack import KnownStack
from stoker.resources.contract.preflight import PlannedStack
from unit.features.preflight.test_quota import REGISTRY

OWN = frozenset({"old", "server", "port"})
CLOUD = KnownCloud(
    {
        "block-storage /snapshots": [{"id": "x1", "volume_id": "old"}, {"id": "x2", "volume_id": "other"}],
        "network /ports": [
            {"id": "p1", "network_id": "old", "device_id": "foreign", "security_groups": ["old"]},
            {"id": "p2", "network_id": "old", "device_id": "server", "security_groups": ["old"]},
            {"id": "port", "network_id": "old", "device_id": "", "security_groups": ["old"]},
            {"id": "p3", "network_id": "old", "device_id": "d", "device_owner": "network:dhcp"},
            {"id": "p4", "network_id": "other", "device_id": "foreign"},
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
    ],
)
def test_who_uses_a_deleted_thing_outside_of_the_stack_is_named(type_name: str, user: str) -> None:
    assert surprises(type_name, CLOUD) == [f"it is deleted, but in use outside of the stack by {user}"]
