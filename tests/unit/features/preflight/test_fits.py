"""Values that the cloud would refuse as it is now are found; those that it would take are not."""

import textwrap
import typing
from collections.abc import Mapping

import pytest
from harness.known_cloud import PROJECT, KnownCloud
from stoker.db.ids import ResourceId, StackId
from stoker.db.rows import Resource
from stoker.features.preflight.check import misfits_of
from stoker.features.preflight.findings import CloudFinding
from stoker.features.preflight.planned import parts_of_creation, parts_of_update
from stoker.features.preview.plan import ChangeKind, ResourceChange
from stoker.resources.contract import Members
from stoker.shapes import TypeIdentity
from unit.features.preflight.test_quota import (
    CINDER,
    FLAVORS,
    PORTLESS,
    REGISTRY,
    compiled,
    resource,
    volume,
)

Json = typing.Any
GIB = 1024**3
IMAGE = {"id": "i1", "name": "i", "status": "active", "min_disk": 0, "min_ram": 0, "size": 1}
ZONES = [
    {"zoneName": "nova", "zoneState": {"available": True}},
    {"zoneName": "down", "zoneState": {"available": False}},
]
CLOUD: Mapping[str, Json] = {
    "compute /flavors/detail": [
        *FLAVORS,
        {"id": "5", "name": "old", "OS-FLV-DISABLED:disabled": True},
        {"id": "0", "name": "diskless", "vcpus": 1, "ram": 64, "disk": 0},
        {"id": "4", "name": "extra", "disk": 9, "swap": 64, "OS-FLV-EXT-DATA:ephemeral": 5},
    ],
    "compute /os-availability-zone": ZONES,
    f"compute /os-quota-sets/{PROJECT}/detail": {
        "metadata_items": {"limit": 2, "in_use": 0},
        "injected_files": {"limit": 1, "in_use": 0},
        "injected_file_content_bytes": {"limit": 8, "in_use": 0},
        "injected_file_path_bytes": {"limit": 4, "in_use": 0},
        "server_group_members": {"limit": 2, "in_use": 0},
    },
    "compute /os-server-groups": [
        {"id": "e1", "name": "apart", "policy": "anti-affinity", "members": ["x"]},
        {"id": "e2", "name": "full", "policy": "affinity", "members": ["x", "y"]},
    ],
    "compute /os-keypairs": [{"keypair": {"name": "mine"}}],
    "block-storage /os-availability-zone": ZONES,
    "block-storage /snapshots": [{"id": "s1", "name": "snap", "size": 7}],
    "block-storage /volumes/detail": [
        {"id": "v1", "name": "free", "status": "available", "size": 3},
        {"id": "v2", "name": "busy", "status": "in-use", "attachments": [{"server_id": "s7"}], "size": 3},
        {"id": "v3", "name": "shared", "status": "in-use", "multiattach": True, "size": 3},
        {"id": "v4", "name": "broken", "status": "error", "size": 3},
        {"id": "v5", "name": "elsewhere", "status": "available", "availability_zone": "other"},
    ],
    "network /networks": [
        {"id": "n1", "name": "inner", "router:external": False},
        {"id": "n2", "name": "outer", "router:external": True},
        {"id": "n3", "name": "bare", "router:external": False},
        {"id": "n4", "name": "far", "router:external": True},
        {"id": "n5", "name": "open", "port_security_enabled": False},
        {"id": "n6", "name": "mine", "project_id": PROJECT, "port_security_enabled": True},
        {"id": "n7", "name": "unrouted", "project_id": PROJECT},
        {"id": "n8", "name": "empty", "subnets": []},
    ],
    "network /subnets": [
        {"id": "u1", "network_id": "n1", "cidr": "10.0.0.0/24"},
        {"id": "u2", "network_id": "n1", "cidr": "2001:db8::/64"},
        {"id": "u3", "network_id": "n2", "cidr": "192.0.2.0/24"},
        {"id": "u7", "network_id": "n7", "cidr": "10.7.0.0/24"},
    ],
    "network /ports": [
        {"id": "p1", "network_id": "n1", "fixed_ips": [{"ip_address": "10.0.0.7"}]},
        {"id": "p2", "network_id": "n6", "device_id": "", "device_owner": ""},
        {"id": "p3", "network_id": "n7"},
        {"id": "i1", "network_id": "n1", "device_id": "r1", "device_owner": "network:router_interface"},
        {"id": "i2", "network_id": "n6", "device_id": "r1", "device_owner": "network:router_interface"},
    ],
    "network /routers": [
        {"id": "r1", "name": "way", "external_gateway_info": {"network_id": "n2"}},
        {"id": "r2", "name": "blind", "external_gateway_info": None},
    ],
    "network /floatingips": [
        {"id": "f1", "floating_network_id": "n2", "floating_ip_address": "192.0.2.9"},
    ],
    "network /security-groups": [
        *({"id": f"g{number}", "name": "web"} for number in (1, 2)),
        {"id": "g3", "name": "db"},
    ],
    "dns /zones": [{"id": "z1", "name": "example.com."}],
}


def server(properties: str, flavor: str = "small") -> str:
    return resource("OS::Nova::Server", f"flavor: {flavor}, networks: {PORTLESS}, {properties}")


def image(**fields: Json) -> dict[str, Json]:
    """The cloud with an image that has these fields."""
    return {"image /images": [{**IMAGE, **fields}]}


def association(port: str, network: str = "far") -> str:
    """A floating IP for a port."""
    return resource("OS::Neutron::FloatingIP", f"floating_network: {network}, port_id: {port}")


def routed(
    gateway: str,
    interface: str = "router: {get_resource: way}, subnet: {get_resource: subnet}",
    network: str = "far",
) -> str:
    """A floating IP of a network for a new port behind a new router."""
    resources: Json = {
        "net": ("OS::Neutron::Net", "name: new"),
        "subnet": ("OS::Neutron::Subnet", "network: {get_resource: net}, cidr: 10.9.0.0/24"),
        "port": ("OS::Neutron::Port", "network: {get_resource: net}"),
        "way": ("OS::Neutron::Router", gateway),
        "interface": ("OS::Neutron::RouterInterface", interface),
    }
    texts = (
        f"{name}: {{type: {kind}, properties: {{{text}}}}}\n" for name, (kind, text) in resources.items()
    )
    return "".join(texts) + association("{get_resource: port}", network)


def servers_of_group(group: str, count: int) -> str:
    hints = f"scheduler_hints: {{group: {group}}}"
    made = "g: {type: OS::Nova::ServerGroup, properties: {policies: [anti-affinity]}}\n"
    return made + "".join(
        f"s{number}: {{type: OS::Nova::Server, properties: {{flavor: small, image: i, networks: {PORTLESS}, "
        f"{hints}}}}}\n"
        for number in range(count)
    )


def disk(properties: str) -> str:
    return server(f"image: i, block_device_mapping_v2: [{{{properties}, boot_index: -1}}]", "extra")


def nested(resources: str) -> Mapping[str, str]:
    """The files of a goal whose template inner.yaml has these resources."""
    return {
        "inner.yaml": f"heat_template_version: 2018-08-31\nresources:\n{textwrap.indent(resources, '  ')}"
    }


def found(resources: str, answers: Mapping[str, Json], **goal: Json) -> list[CloudFinding]:
    stack = compiled(resources, **goal)
    parts = list(parts_of_creation(stack.plan, stack.nested, REGISTRY))
    return list(misfits_of(parts, KnownCloud({**CLOUD, **answers})))


def found_by_update(
    resources: str, stored: Mapping[str, str], answers: Mapping[str, Json]
) -> list[CloudFinding]:
    """The findings for an update that adds all but some resources, which have things of these ids."""
    plan = compiled(resources).plan
    changes = [
        ResourceChange(
            name,
            ChangeKind.UPDATED if name in stored else ChangeKind.ADDED,
            row=a_row(name, item.type, stored[name]) if name in stored else None,
            definition=item,
        )
        for name, item in plan.resources.items()
    ]
    deleted = [
        ResourceChange(name, ChangeKind.DELETED, row=a_row(name, FLOATING, physical_id))
        for name, physical_id in stored.items()
        if name not in plan.resources
    ]
    parts = list(parts_of_update([*changes, *deleted], REGISTRY))
    return list(misfits_of(parts, KnownCloud({**CLOUD, **answers})))


def a_row(name: str, type_name: str, physical_id: str) -> Resource:
    plugin = TypeIdentity(type_name)
    return Resource(
        ResourceId(name),
        StackId("s"),
        name,
        type_name,
        plugin,
        "CREATE",
        "COMPLETE",
        "",
        0.0,
        0.0,
        physical_id,
    )


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
        # An administrator sees it in the list.
        (server("image: i", "old"), {}, "flavor", "the flavor old is disabled"),
        (server("image: i", "older"), {}, "flavor", "the flavor older is disabled"),
        (
            volume("size: 9"),
            {CINDER: {"per_volume_gigabytes": {"limit": 8, "in_use": 0}}},
            "size",
            "the volume has 9 GiB, above the limit of 8 for one volume",
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
            "10.0.1.7 is not an address of the subnets of the network inner: 10.0.0.0/24",
        ),
        (
            resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.255}]"),
            {},
            "fixed_ips.0.ip_address",
            "is not an address of the subnets",
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
        (
            server("image: i"),
            {"compute /os-availability-zone": ZONES[1:]},
            "",
            "no availability zone has a compute service",
        ),
        (
            disk("swap_size: 65"),
            {},
            "block_device_mapping_v2.0.swap_size",
            "is 65 MiB, but the flavor allows 64",
        ),
        (
            disk("ephemeral_size: 6"),
            {},
            "block_device_mapping_v2.0.ephemeral_size",
            "is 6 GiB, but the flavor allows 5",
        ),
        (
            server("image: i, metadata: {a: 1, b: 2, c: 3}"),
            {},
            "metadata",
            "the server has 3 metadata items, above the limit of 2",
        ),
        (
            server("image: i, personality: {/a: x, /b: x}"),
            {},
            "personality",
            "the server has 2 files, above the limit of 1",
        ),
        (
            server("image: i, personality: {/long: x}"),
            {},
            "personality",
            "has 5 characters in the path of a file, above the limit of 4",
        ),
        (
            server("image: i, personality: {/a: seven77}"),
            {},
            "personality",
            "has 12 characters of base64 in a file, above the limit of 8",
        ),
        (
            servers_of_group("{get_resource: g}", 3),
            {},
            "scheduler_hints.group",
            "the server group g would have 3 members, above the limit of 2",
        ),
        (
            resource(PORT, "network: open, security_groups: [db]"),
            {},
            "security_groups",
            "security_groups need port security",
        ),
        (
            resource(PORT, "network: {get_resource: n}, allowed_address_pairs: [{ip_address: 10.0.0.1}]")
            + "n: {type: OS::Neutron::Net, properties: {port_security_enabled: false}}",
            {},
            "allowed_address_pairs",
            "allowed_address_pairs need port security",
        ),
        (
            resource(
                "OS::Nova::Server",
                "flavor: small, image: i, security_groups: [db], networks: [{network: open}]",
            ),
            {},
            "security_groups",
            "security_groups need port security",
        ),
        (association("p2"), {}, "port_id", "not reachable from the port"),
        (
            resource("OS::Neutron::FloatingIPAssociation", "floatingip_id: {get_resource: f}, port_id: p2")
            + "f: {type: OS::Neutron::FloatingIP, properties: {floating_network: far}}",
            {},
            "port_id",
            "not reachable from the port",
        ),
        (routed("external_gateway_info: {network: outer}"), {}, "port_id", "not reachable from the port"),
        (routed("name: gateless"), {}, "port_id", "not reachable from the port"),
        (
            association("p3")
            + "i: {type: OS::Neutron::RouterInterface, properties: {router: blind, subnet: u7}}",
            {},
            "port_id",
            "not reachable from the port",
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
        (server("image: i", "'1'"), image()),
        (
            "other: {type: OS::Nova::Flavor, properties: {name: later, ram: 64, vcpus: 1}}\n"
            + server("image: i", "later"),
            image(),
        ),
        (volume("size: 9"), {CINDER: {"per_volume_gigabytes": {"limit": -1, "in_use": 0}}}),
        (volume("size: 8"), {CINDER: {"per_volume_gigabytes": {"limit": 8, "in_use": 0}}}),
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
        (server("image: i"), {"compute /os-availability-zone": []}),
        (disk("swap_size: 64"), {}),
        (disk("ephemeral_size: 5"), {}),
        (disk("ephemeral_format: ext4"), {}),
        (server("image: i, metadata: {a: 1, b: 2}"), {}),
        (server("image: i, personality: {/abc: sixsix}"), {}),
        (server("image: i, personality: {/a: null}"), {}),
        (servers_of_group("{get_resource: g}", 1), {}),
        (resource(PORT, "network: open"), {}),
        (
            resource(
                "OS::Nova::Server",
                "flavor: small, image: i, security_groups: [default], networks: [{network: open}]",
            ),
            {},
        ),
        (resource(PORT, "network: open, port_security_enabled: true, security_groups: [db]"), {}),
        (resource(PORT, "network: mine, security_groups: [db]"), {}),
        (resource("OS::Nova::Server", "flavor: small, image: i, networks: [{network: empty, port: p1}]"), {}),
        (
            resource("OS::Nova::Server", "flavor: small, image: i, networks: [{network: empty}]")
            + "new: {type: OS::Neutron::Subnet, properties: {network: empty, cidr: 10.9.9.0/24}}",
            {},
        ),
        (association("p2", "outer"), {}),
        # No router at all: the stack around may bring one.
        (association("p3"), {}),
        # A router that the caller does not see.
        (association("p2"), {"network /routers": []}),
        (routed("external_gateway_info: {network: far}"), {}),
        (routed("name: r", "router: {get_resource: way}, subnet: {get_attr: [way, name]}"), {}),
        (routed("external_gateway_info: {network: {get_attr: [net, name]}}"), {}),
    ],
)
def test_what_the_cloud_would_take_raises_no_alarm(resources: str, answers: Mapping[str, Json]) -> None:
    assert found(resources, answers) == []


def test_without_a_volume_service_a_volume_may_fail() -> None:
    [finding] = found(volume("size: 1"), {"block-storage /os-availability-zone": ZONES[1:]})
    assert finding.message == "no availability zone has a volume service that is enabled"
    assert (finding.certainty.value, bool(finding.advice)) == ("not known", True)
    assert found(volume("size: 1"), {"block-storage /os-availability-zone": []}) == []


@pytest.mark.parametrize(
    ("resources", "path", "words", "certainty"),
    [
        # Members of other users, who are not told, do not count.
        (servers_of_group("full", 1), "scheduler_hints.group", "would have 3 members", "not known"),
        (servers_of_group("{get_resource: g}", 3), "scheduler_hints.group", "would have 3", "likely"),
        (
            volume("size: 2, availability_zone: moon"),
            "availability_zone",
            "no availability zone",
            "not known",
        ),
        (servers_of_group("apart", 1), "scheduler_hints.group", "the 2 servers of the group", "not known"),
        (
            servers_of_group("{get_resource: g}", 2),
            "scheduler_hints.group",
            "the 2 servers of the group g need different hosts",
            "not known",
        ),
        # Another project's router in a network of that one.
        (association("p1"), "port_id", "no router of it that you see", "not known"),
        (
            resource("OS::Nova::Server", "flavor: small, image: i, networks: [{network: empty}]"),
            "networks.0.network",
            "the network empty has no subnet",
            "likely",
        ),
        # An operator may permit that.
        (
            server(
                "image: i, availability_zone: nova, "
                "block_device_mapping_v2: [{volume_id: v5, boot_index: -1}]"
            ),
            "block_device_mapping_v2.0.volume_id",
            "the volume is in the zone other, and its server in nova",
            "not known",
        ),
        (
            server("image: i, availability_zone: nova").replace("m:", "server:")
            + volume("size: 1, availability_zone: down")
            + resource(
                "OS::Cinder::VolumeAttachment",
                "instance_uuid: {get_resource: server}, volume_id: {get_resource: v}",
            ),
            "volume_id",
            "the volume is in the zone down, and its server in nova",
            "not known",
        ),
    ],
)
def test_what_may_be_refused_is_said_with_its_certainty(
    resources: str, path: str, words: str, certainty: str
) -> None:
    zones = {"block-storage /os-availability-zone": [{"zoneName": "down"}, {"zoneName": "nova"}]}
    [finding] = found(resources, zones)
    assert ".".join(map(str, finding.path[3:])) == path
    assert words in finding.message
    assert (finding.certainty.value, bool(finding.advice)) == (certainty, True)


EXTERNAL = "ext: {type: OS::Neutron::Net, external_id: ID}\n"
INTERFACE = "i: {type: OS::Neutron::RouterInterface, properties: {router: way, subnet: u7}}\n"


@pytest.mark.parametrize(
    "resources",
    [
        EXTERNAL + association("p2", "{get_resource: ext}"),
        EXTERNAL + routed("external_gateway_info: {network: {get_resource: ext}}", network="outer"),
        EXTERNAL + routed("external_gateway_info: {network: outer}", network="{get_resource: ext}"),
        "port: {type: OS::Neutron::Port, external_id: p2}\n" + association("{get_resource: port}", "NAME"),
        "r: {type: OS::Neutron::Router, external_id: r1}\n"
        + INTERFACE.replace("way", "{get_resource: r}")
        + association("p3", "NAME"),
        "sub: {type: OS::Neutron::Subnet, external_id: u7}\n"
        + INTERFACE.replace("u7", "{get_resource: sub}")
        + association("p3", "NAME"),
        "made: {type: OS::Neutron::FloatingIP, external_id: FIP}\n"
        + resource("OS::Neutron::FloatingIPAssociation", "floatingip_id: {get_resource: made}, port_id: p2"),
    ],
)
def test_what_a_template_names_by_an_external_id_is_compared_as_the_thing_that_exists(resources: str) -> None:
    addresses = {"network /floatingips": [{"id": f"f{n}", "floating_network_id": f"n{n}"} for n in (2, 4)]}
    for network, name, count in (("2", "outer", 0), ("4", "far", 1)):
        text = resources.replace("id: ID", f"id: n{network}").replace("id: FIP", f"id: f{network}")
        assert len(found(text.replace("NAME", name), addresses)) == count


@pytest.mark.parametrize(
    ("stored", "count"),
    [
        ({}, 1),
        ({"net": "n6"}, 1),
        ({"net": "n7", "way": "r1"}, 1),
        # The caller does not see that network.
        ({"net": "n9"}, 0),
    ],
)
def test_a_network_that_a_stack_has_already_has_also_the_routers_that_others_gave_it(
    stored: Mapping[str, str], count: int
) -> None:
    template = routed("external_gateway_info: {network: outer}")
    assert len(found_by_update(template, stored, {})) == count
    ports = [
        {"id": f"o{net}", "network_id": net, "device_id": "r4", "device_owner": "network:router_interface"}
        for net in ("n6", "n7")
    ]
    routers = [*CLOUD["network /routers"], {"id": "r4", "external_gateway_info": {"network_id": "n4"}}]
    others = {"network /ports": [*CLOUD["network /ports"], *ports], "network /routers": routers}
    assert len(found_by_update(template, stored, others)) == (0 if "net" in stored else 1)


SUBNET = "new: {type: OS::Neutron::Subnet, properties: {network: NET, cidr: 10.9.9.0/24}}\n"
SERVER = resource("OS::Nova::Server", "flavor: small, image: i, networks: [{network: empty}]")
FIXED = resource(PORT, "network: inner, fixed_ips: [{ip_address: 10.9.9.9}]")


@pytest.mark.parametrize(("resources", "network"), [(SERVER, "empty"), (FIXED, "inner")])
def test_another_template_of_the_tree_may_add_the_subnet(resources: str, network: str) -> None:
    subnet = SUBNET.replace("NET", network)
    inner = "in: {type: inner.yaml}\n"
    assert found(inner + subnet, {}, files=nested(resources)) == []
    assert found(inner + resources, {}, files=nested(subnet)) == []
    group = "in: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: inner.yaml}}}\n"
    assert found(group, {}, files=nested(subnet + resources)) == []
    # That of a network which the action makes is for that one.
    made = SUBNET.replace("NET", "{get_resource: n}") + "n: {type: OS::Neutron::Net}\n"
    assert len(found(made + resources, {})) == 1
    assert len(found(inner, {}, files=nested(resources))) == 1
    number = {"inner": "n1", "empty": "n8"}[network]
    external = f"n: {{type: OS::Neutron::Net, external_id: {number}}}\n"
    assert found(external + SUBNET.replace("NET", "{get_resource: n}") + resources, {}) == []


def test_subnets_that_the_caller_does_not_see_may_have_the_address() -> None:
    networks = [{"id": "n1", "name": "inner", "subnets": ["u1", "u2", "theirs"]}]
    assert found(FIXED, {"network /networks": networks}) == []
    networks = [{"id": "n1", "name": "inner", "subnets": ["u1", "u2"]}]
    assert len(found(FIXED, {"network /networks": networks})) == 1


@pytest.mark.parametrize(
    ("resources", "network"),
    [
        (resource(FLOATING, "floating_network: inner"), "n1"),
        (resource(PORT, "network: open, security_groups: [db]"), "n5"),
    ],
)
def test_an_update_may_change_a_network_that_the_stack_has(resources: str, network: str) -> None:
    net = "net: {type: OS::Neutron::Net, properties: {name: new}}\n"
    assert found_by_update(net + resources, {"net": network}, {}) == []
    assert len(found_by_update(net + resources, {"net": "n7"}, {})) == 1


def test_a_policy_of_the_template_may_make_a_network_external() -> None:
    policy = (
        "p: {type: OS::Neutron::RBACPolicy, properties: {object_type: network, object_id: n1, "
        "action: access_as_external, target_tenant: p}}\n"
    )
    assert found(policy + resource(FLOATING, "floating_network: inner"), {}) == []
    inner = "in: {type: inner.yaml}\n"
    assert found(inner, {}, files=nested(policy + resource(FLOATING, "floating_network: inner"))) == []


def test_an_aggregate_of_the_template_may_make_the_zone() -> None:
    wanted = server("image: i, availability_zone: moon")
    zone = "a: {type: OS::Nova::HostAggregate, properties: {name: a, availability_zone: moon}}\n"
    assert found(wanted + zone, {}) == []
    assert found(wanted + "in: {type: inner.yaml}\n", {}, files=nested(zone)) == []


@pytest.mark.parametrize(
    ("resources", "holder"),
    [
        (resource("OS::Nova::KeyPair", "name: mine"), "mine"),
        (resource("OS::Designate::Zone", "name: example.com., email: a@example.com"), "z1"),
        (resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.7}]"), "p1"),
        (resource(FLOATING, "floating_network: outer, floating_ip_address: 192.0.2.9"), "f1"),
        (server("image: i, security_groups: [web]"), "g2"),
        (resource("OS::Cinder::VolumeAttachment", "instance_uuid: s, volume_id: busy"), "s7"),
        (resource("OS::Cinder::VolumeAttachment", "instance_uuid: s, volume_id: busy"), "v2"),
    ],
)
def test_what_the_stack_itself_has_an_update_may_free(resources: str, holder: str) -> None:
    for deleted, certainty in ((holder, "likely"), ("another", "certain")):
        [finding] = found_by_update(resources, {"old": deleted}, {})
        assert finding.certainty.value == certainty


def test_an_update_gives_a_router_the_gateway_that_its_template_says() -> None:
    template = "way: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: far}}}\n"
    assert found_by_update(template + association("p2"), {"way": "r1"}, {}) == []
    assert len(found_by_update(template + association("p2", "outer"), {"way": "r1"}, {})) == 1


def test_an_external_network_of_the_stack_may_have_routers_of_others() -> None:
    template = (
        "ext: {type: OS::Neutron::ProviderNet, properties: {network_type: flat, router_external: true}}\n"
    )
    template += (
        "sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: ext}, cidr: 10.1.0.0/24}}\n"
    )
    template += association("p2", "{get_resource: ext}")
    assert found_by_update(template, {"ext": "n2"}, {}) == []
    assert len(found_by_update(template, {"ext": "n4"}, {})) == 1


@pytest.mark.parametrize("gateways", [["n2", "n4"], ["n4"], ["n4", "n2"]])
def test_a_router_may_have_several_gateways(gateways: list[str]) -> None:
    entries = [{"network_id": network} for network in gateways]
    way = {"id": "r1", "name": "way", "external_gateway_info": {"network_id": "n2"}}
    assert found(association("p2"), {"network /routers": [{**way, "external_gateways": entries}]}) == []
    specs = "external_gateway_info: {network: outer}, value_specs: {external_gateways: []}"
    assert found(routed(specs), {}) == []


@pytest.mark.parametrize(
    "gateways", [{"external_gateway_info": "odd"}, {"external_gateways": 7}, {"external_gateways": ["odd"]}]
)
def test_a_gateway_in_a_form_that_nobody_knows_is_not_known(gateways: Mapping[str, Json]) -> None:
    assert found(association("p2"), {"network /routers": [{"id": "r1", "name": "way", **gateways}]}) == []


WAY = "way: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: far}}}\n"
JOINED = WAY + INTERFACE.replace("way", "{get_resource: way}").replace("u7", "u6")
U6 = {
    "network /subnets": [*CLOUD["network /subnets"], {"id": "u6", "network_id": "n6", "cidr": "10.6.0.0/24"}]
}


def test_a_router_of_another_template_of_the_tree_may_lead_there() -> None:
    assert found(JOINED + "in: {type: inner.yaml}", U6, files=nested(association("p2"))) == []
    assert found("in: {type: inner.yaml}\n" + association("p2"), U6, files=nested(JOINED)) == []
    assert len(found("in: {type: inner.yaml}", U6, files=nested(association("p2")))) == 1
    hidden = "in: {type: inner.yaml, properties: {x: {get_attr: [w, value]}}}\n" + association("p2")
    assert len(found(hidden + "w: {type: OS::Heat::Value, properties: {value: 1}}", U6, files=VALUE)) == 1


VALUE = {"inner.yaml": "heat_template_version: 2018-08-31\nparameters: {x: {type: string}}\nresources: {}\n"}


def test_groups_of_other_projects_which_an_admin_sees_are_none_for_the_compute_service() -> None:
    class Seen(KnownCloud):
        def members(self, service: str, path: str, items: str, **query: str | int) -> Json:
            if path != "/security-groups":
                return None
            assert query["fields"] == ("id", "name")  # A service takes one text for the name of one field.
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


def test_users_of_an_address_are_shown_to_the_caller_and_not_in_the_stacks_reason() -> None:
    """An administrator sees the ports of other projects, and all readers of the stack see its reason."""
    [finding] = found(resource(PORT, "network: n1, fixed_ips: [{ip_address: 10.0.0.7}]"), {})
    assert finding.message == "10.0.0.7 is in use"
    assert finding.available == "in use by the port p1"
