"""Values that the cloud would refuse as it is now are found; those that it would take are not."""

import typing
from collections.abc import Mapping

import pytest
from harness.known_cloud import KnownCloud
from stoker.features.preflight.check import misfits_of
from stoker.features.preflight.findings import CloudFinding
from stoker.features.preflight.planned import parts_of_creation
from stoker.resources.contract import Members
from unit.features.preflight.test_quota import FLAVORS, PORTLESS, REGISTRY, compiled, resource, volume

Json = typing.Any
GIB = 1024**3
IMAGE = {"id": "i1", "name": "i", "status": "active", "min_disk": 0, "min_ram": 0, "size": 1}
ZONES = [
    {"zoneName": "nova", "zoneState": {"available": True}},
    {"zoneName": "down", "zoneState": {"available": False}},
]
CLOUD: Mapping[str, Json] = {
    "compute /flavors/detail": [*FLAVORS, {"id": "0", "name": "diskless", "vcpus": 1, "ram": 64, "disk": 0}],
    "compute /os-availability-zone": ZONES,
    "compute /os-keypairs": [{"keypair": {"name": "mine"}}],
    "block-storage /os-availability-zone": ZONES,
    "block-storage /snapshots": [{"id": "s1", "name": "snap", "size": 7}],
    "block-storage /volumes/detail": [
        {"id": "v1", "name": "free", "status": "available", "size": 3},
        {"id": "v2", "name": "busy", "status": "in-use", "multiattach": False, "size": 3},
        {"id": "v3", "name": "shared", "status": "in-use", "multiattach": True, "size": 3},
        {"id": "v4", "name": "broken", "status": "error", "size": 3},
    ],
    "network /networks": [
        {"id": "n1", "name": "inner", "router:external": False},
        {"id": "n2", "name": "outer", "router:external": True},
        {"id": "n3", "name": "bare", "router:external": False},
    ],
    "network /subnets": [
        {"id": "u1", "network_id": "n1", "cidr": "10.0.0.0/24"},
        {"id": "u2", "network_id": "n1", "cidr": "2001:db8::/64"},
        {"id": "u3", "network_id": "n2", "cidr": "192.0.2.0/24"},
    ],
    "network /ports": [{"id": "p1", "network_id": "n1", "fixed_ips": [{"ip_address": "10.0.0.7"}]}],
    "network /floatingips": [
        {"id": "f1", "floating_network_id": "n2", "floating_ip_address": "192.0.2.9"},
    ],
    "network /security-groups": [
        *({"id": f"g{number}", "name": "web"} for number in (1, 2)),
        {"id": "g3", "name": "db"},
    ],
    "dns /zones": [{"name": "example.com."}],
}


def server(properties: str, flavor: str = "small") -> str:
    return resource("OS::Nova::Server", f"flavor: {flavor}, networks: {PORTLESS}, {properties}")


def image(**fields: Json) -> dict[str, Json]:
    """The cloud with an image that has these fields."""
    return {"image /images": [{**IMAGE, **fields}]}


def found(resources: str, answers: Mapping[str, Json]) -> list[CloudFinding]:
    stack = compiled(resources)
    parts = list(parts_of_creation(stack.plan, stack.nested, REGISTRY))
    return list(misfits_of(parts, KnownCloud({**CLOUD, **answers})))


PORT = "OS::Neutron::Port"
FLOATING = "OS::Neutron::FloatingIP"
ROUTER = "OS::Neutron::Router"


@pytest.mark.parametrize(
    ("resources", "answers", "path", "words"),
    [
        (server("image: i"), image(status="queued"), "image", "the image i is queued"),
        (server("image: i"), image(min_ram=513), "flavor", "needs 513 MiB of memory, but the flavor has 512"),
        (server("image: i"), image(min_disk=11), "image", "needs a disk of 11 GiB, but that has 10"),
        (server("image: i"), image(size=10 * GIB + 1), "image", "needs a disk of 11 GiB"),
        (server("image: i"), image(virtual_size=12 * GIB), "image", "needs a disk of 12 GiB"),
        (
            server("block_device_mapping_v2: [{image: i, volume_size: 2}]"),
            image(min_disk=3),
            "block_device_mapping_v2.0.image",
            "needs a disk of 3 GiB, but that has 2",
        ),
        (volume("size: 2, image: i"), image(min_disk=3), "image", "needs a disk of 3 GiB, but that has 2"),
        (volume("size: 2, snapshot_id: snap"), {}, "size", "has 2 GiB, but its source snap has 7"),
        (volume("size: 2, source_volid: v1"), {}, "size", "has 2 GiB, but its source v1 has 3"),
        (volume("size: 2, availability_zone: moon"), {}, "availability_zone", "no availability zone moon"),
        (server("image: i, availability_zone: moon"), {}, "availability_zone", "no availability zone moon"),
        (server("image: i, availability_zone: down"), {}, "availability_zone", "no availability zone down"),
        (resource("OS::Nova::KeyPair", "name: mine"), {}, "name", "you have a key pair mine already"),
        (server("image: i, security_groups: [db, web]"), {}, "security_groups.1", "2 security groups"),
        (
            server("image: i, block_device_mapping_v2: [{volume_id: busy, boot_index: -1}]"),
            {},
            "block_device_mapping_v2.0.volume_id",
            "the volume busy is in-use",
        ),
        (
            resource("OS::Cinder::VolumeAttachment", "instance_uuid: s, volume_id: broken"),
            {},
            "volume_id",
            "the volume broken is error",
        ),
        (
            resource(PORT, "network: inner, fixed_ips: [{ip_address: 10.0.1.7}]"),
            {},
            "fixed_ips.0.ip_address",
            "10.0.1.7 is no address of the subnets of the network inner: 10.0.0.0/24",
        ),
        (
            resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.255}]"),
            {},
            "fixed_ips.0.ip_address",
            "is no address of the subnets",
        ),
        (
            resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.7}]"),
            {},
            "fixed_ips.0.ip_address",
            "10.0.0.7 is in use",
        ),
        (
            resource(
                "OS::Nova::Server", "flavor: small, image: i, networks: [{network: n1, fixed_ip: 10.0.0.7}]"
            ),
            {},
            "networks.0.fixed_ip",
            "10.0.0.7 is in use",
        ),
        (
            resource(FLOATING, "floating_network: outer, floating_ip_address: 192.0.2.9"),
            {},
            "floating_ip_address",
            "192.0.2.9 is in use",
        ),
        (resource(FLOATING, "floating_network: inner"), {}, "floating_network", "inner is not external"),
        (
            resource(ROUTER, "external_gateway_info: {network: n1}"),
            {},
            "external_gateway_info.network",
            "n1 is not external",
        ),
        (
            resource("OS::Designate::Zone", "name: example.com., email: a@example.com"),
            {},
            "name",
            "there is a zone example.com. already",
        ),
    ],
)
def test_what_the_cloud_would_refuse_is_found(
    resources: str, answers: Mapping[str, Json], path: str, words: str
) -> None:
    [finding] = found(resources, answers)
    assert ".".join(map(str, finding.path[3:])) == path
    assert words in finding.message
    assert finding.advice


@pytest.mark.parametrize(
    ("resources", "answers"),
    [
        (server("image: i"), image(min_disk=10, min_ram=512, size=10 * GIB)),
        # The disk is as large as the image; a flavor that is not known is none.
        (server("image: i", "diskless"), image(min_disk=30)),
        (server("image: i", "twice"), image(min_disk=30, min_ram=9999)),
        (server("image: j"), image()),
        (server("image: i"), {}),
        (server("image: i, availability_zone: nova"), image()),
        (server("image: i, availability_zone: 'moon:host'"), image()),
        (server("image: i, security_groups: [db, g1, other]"), image()),
        (server("image: i, block_device_mapping_v2: [{volume_id: shared, boot_index: -1}]"), image()),
        (server("image: i, block_device_mapping_v2: [{volume_id: free, boot_index: -1}]"), image()),
        (volume("size: 7, snapshot_id: snap, availability_zone: nova"), {}),
        (volume("snapshot_id: snap"), {}),
        (resource("OS::Nova::KeyPair", "name: another"), {}),
        (resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.8}]"), {}),
        (resource(PORT, "network: n1, fixed_ips: [{ip_address: '2001:db8::8'}]"), {}),
        # Nobody knows the subnets of a network that shows none, or whose network another resource makes.
        (resource(PORT, "network: bare, fixed_ips: [{ip_address: 10.9.9.9}]"), {}),
        (resource(PORT, "network: unseen, fixed_ips: [{ip_address: 10.0.0.7}]"), {}),
        # The template, or the stack around it, adds the subnet to the network.
        (
            resource(PORT, "network: n1, fixed_ips: [{subnet: {get_resource: new}, ip_address: 10.9.9.9}]")
            + "new: {type: OS::Neutron::Subnet, properties: {network: n1, cidr: 10.9.9.0/24}}",
            {},
        ),
        (resource(FLOATING, "floating_network: outer, floating_ip_address: 192.0.2.10"), {}),
        (resource(FLOATING, "floating_network: unseen"), {}),
        (resource("OS::Designate::Zone", "name: example.org., email: a@example.com"), {}),
    ],
)
def test_what_the_cloud_would_take_raises_no_alarm(resources: str, answers: Mapping[str, Json]) -> None:
    assert found(resources, answers) == []


def test_groups_of_other_projects_which_an_admin_sees_are_none_for_the_compute_service() -> None:
    class Seen(KnownCloud):
        def members(self, service: str, path: str, items: str, **query: str | int) -> Json:
            groups = [{"id": f"g-{project}", "name": "default", "project_id": project} for project in "pq"]
            return Members(
                [
                    group
                    for group in groups
                    if query.get("project_id", group["project_id"]) == group["project_id"]
                ]
            )

    stack = compiled(server("image: i, security_groups: [default]"))
    parts = list(parts_of_creation(stack.plan, stack.nested, REGISTRY))
    assert list(misfits_of(parts, Seen({}))) == []


def test_who_uses_an_address_is_told_to_the_caller_and_not_in_the_stacks_reason() -> None:
    """An administrator sees the ports of other projects, and all readers of the stack see its reason."""
    [finding] = found(resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.7}]"), {})
    assert finding.message == "10.0.0.7 is in use"
    assert finding.available == "in use by the port p1"
