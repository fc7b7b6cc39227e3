"""Quotas that an action needs against those that the caller's project has left."""

import typing
from collections.abc import Mapping

import pytest
import yaml
from harness.known_cloud import PROJECT, KnownCloud, quotas
from stoker.engine.compile import GoalCompiler
from stoker.engine.context import Compiled
from stoker.engine.planning.requests import PREVIEWED, Goal
from stoker.features.preflight.findings import CloudFinding, obstacles
from stoker.features.preflight.planned import PlannedPart, parts_of_creation
from stoker.features.preflight.quota import find_exceeded
from stoker.resources.contract.known_stack import KnownStack
from stoker.resources.contract.preflight import Certainty, PlannedStack
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer
from stoker.template.compile import Identity, Limits

Json = typing.Any
REGISTRY = ResourceRegistry.installed()
NOVA = f"compute /os-quota-sets/{PROJECT}/detail"
CINDER = f"block-storage /os-quota-sets/{PROJECT}"
NEUTRON = f"network /quotas/{PROJECT}/details"
FLAVORS: Json = [
    {"id": "1", "name": "small", "vcpus": 2, "ram": 512, "disk": 10},
    {"id": "2", "name": "twice", "vcpus": 1, "ram": 64, "disk": 1},
    {"id": "3", "name": "twice", "vcpus": 1, "ram": 64, "disk": 1},
]
TYPES: Json = [{"id": "t1", "name": "fast"}]
SNAPSHOTS: Json = [{"id": "s1", "name": "snap", "size": 7}]
SEEN: Mapping[str, Json] = {
    "compute /flavors/detail": FLAVORS,
    "block-storage /types": TYPES,
    "block-storage /types/default": {"id": "t0", "name": "usual"},
    "block-storage /snapshots": SNAPSHOTS,
}
SERVER = (
    "{name}: {{type: OS::Nova::Server, properties: {{flavor: {flavor}, image: i, networks: {networks}}}}}\n"
)
PORTLESS = "[{allocate_network: none}]"


def server(name: str = "s", flavor: str = "small", networks: str = PORTLESS) -> str:
    return SERVER.format(name=name, flavor=flavor, networks=networks)


def volume(properties: str, name: str = "v") -> str:
    return f"{name}: {{type: OS::Cinder::Volume, properties: {{{properties}}}}}\n"


def resource(kind: str, properties: str = "") -> str:
    return f"m: {{type: {kind}, properties: {{{properties}}}}}\n"


def compiled(resources: str, **goal: Json) -> Compiled:
    template = {"heat_template_version": "2018-08-31", "resources": yaml.safe_load(resources)}
    sealer = Sealer(["A" * 86 + "=="]).of_stack("p", "r")
    wanted = Goal(template, purpose=PREVIEWED, **goal)
    return GoalCompiler(REGISTRY, Limits()).compile(wanted, Identity("s", "i", "p"), sealer)


def found(resources: str, answers: Mapping[str, Json], **goal: Json) -> list[CloudFinding]:
    """The findings for a creation."""
    stack = compiled(resources, **goal)
    parts = list(parts_of_creation(stack.plan, stack.nested, REGISTRY))
    return list(find_exceeded(parts, KnownCloud({**SEEN, **answers})))


def balancers(quota: str, items: str, **fields: Json) -> dict[str, Json]:
    """A project that has one of a kind of things of the load balancer service, and may have one."""
    return {f"load-balancer /lbaas/quotas/{PROJECT}": {quota: 1}, f"load-balancer /lbaas/{items}": [fields]}


@pytest.mark.parametrize(
    ("resources", "answers", "message"),
    [
        (
            server(),
            {NOVA: quotas(instances=0)},
            "quota instances of compute: 1 needed, 0 left (3 of 3 in use)",
        ),
        (server(), {NOVA: quotas(cores=1)}, "quota cores of compute: 2 needed, 1 left"),
        (server(), {NOVA: quotas(ram=511)}, "quota ram of compute: 512 needed"),
        (
            resource("OS::Nova::KeyPair", "name: k"),
            {NOVA: {"key_pairs": {"limit": 2, "in_use": 0, "reserved": 0}}, "compute /os-keypairs": [{}, {}]},
            "quota key_pairs of compute: 1 needed, 0 left (2 of 2 in use)",
        ),
        (resource("OS::Nova::ServerGroup"), {NOVA: quotas(server_groups=0)}, "quota server_groups"),
        (
            server(networks="[{network: n}, {subnet: s}, {port: p}]"),
            {NEUTRON: {"port": {"limit": 1, "used": 0, "reserved": 0}}},
            "quota port of network: 2 needed, 1 left",
        ),
        (
            "s: {type: OS::Nova::Server, properties: {flavor: small, networks: [{allocate_network: none}], "
            "block_device_mapping_v2: [{image: i, volume_size: 9}, {snapshot_id: snap, boot_index: -1}, "
            "{volume_id: v, boot_index: -1}]}}\n",
            {CINDER: quotas(volumes=1, gigabytes=15)},
            "quota volumes of block-storage: 2 needed, 1 left; "
            "quota gigabytes of block-storage: 16 needed, 15 left",
        ),
        (volume("size: 5"), {CINDER: quotas(volumes=0)}, "quota volumes of block-storage"),
        (
            volume("size: 5"),
            {CINDER: quotas(gigabytes=4)},
            "quota gigabytes of block-storage: 5 needed, 4 left",
        ),
        (
            volume("snapshot_id: s1"),
            {CINDER: quotas(gigabytes=6)},
            "quota gigabytes of block-storage: 7 needed",
        ),
        (volume("size: 5, volume_type: t1"), {CINDER: quotas(gigabytes_fast=4)}, "quota gigabytes_fast"),
        (volume("size: 5"), {CINDER: quotas(volumes_usual=0)}, "quota volumes_usual of block-storage"),
        (resource("OS::Neutron::Net"), {NEUTRON: quotas(network=0)}, "quota network of network"),
        (
            resource("OS::Neutron::Subnet", "network: n, cidr: 10.0.0.0/24"),
            {NEUTRON: quotas(subnet=0)},
            "quota subnet of network",
        ),
        (resource("OS::Neutron::Port", "network: n"), {NEUTRON: quotas(port=0)}, "quota port of network"),
        (resource("OS::Neutron::Router"), {NEUTRON: quotas(router=0)}, "quota router of network"),
        (
            resource("OS::Neutron::Net", f"tenant_id: {PROJECT}"),
            {NEUTRON: quotas(network=0)},
            "quota network of network",
        ),
        (
            resource("OS::Neutron::FloatingIP", "floating_network: n"),
            {NEUTRON: quotas(floatingip=0)},
            "quota floatingip",
        ),
        (
            resource("OS::Neutron::SubnetPool", "prefixes: [10.0.0.0/8]"),
            {NEUTRON: quotas(subnetpool=0)},
            "quota subnetpool of network",
        ),
        (
            resource(
                "OS::Neutron::RBACPolicy",
                "object_type: network, object_id: n, action: access_as_shared, target_tenant: p",
            ),
            {NEUTRON: quotas(rbac_policy=0)},
            "quota rbac_policy of network",
        ),
        (resource("OS::Neutron::Trunk", "port: p"), {NEUTRON: quotas(trunk=0)}, "quota trunk of network"),
        (
            resource("OS::Neutron::SecurityGroupRule", "security_group: g"),
            {NEUTRON: quotas(security_group_rule=0)},
            "quota security_group_rule of network",
        ),
        # Two rules for egress come with a group that has none.
        (
            resource("OS::Neutron::SecurityGroup", "rules: [{protocol: tcp}]"),
            {NEUTRON: quotas(security_group=1, security_group_rule=2)},
            "quota security_group_rule of network: 3 needed, 2 left",
        ),
        (
            resource("OS::Octavia::LoadBalancer", "vip_subnet: s"),
            {
                f"load-balancer /lbaas/quotas/{PROJECT}": {"load_balancer": 1},
                "load-balancer /lbaas/loadbalancers": [{}],
            },
            "quota load_balancer of load-balancer: 1 needed, 0 left",
        ),
        (
            resource("OS::Octavia::PoolMember", "pool: p, address: 10.0.0.1, protocol_port: 80"),
            {
                f"load-balancer /lbaas/quotas/{PROJECT}": {"member": 2},
                "load-balancer /lbaas/pools": [{"members": [{}, {}]}],
            },
            "quota member of load-balancer",
        ),
        (
            resource("OS::Octavia::Listener", "loadbalancer: b, protocol: TCP, protocol_port: 80"),
            balancers("listener", "listeners"),
            "quota listener of load-balancer",
        ),
        (
            resource("OS::Octavia::Pool", "listener: l, protocol: TCP, lb_algorithm: ROUND_ROBIN"),
            balancers("pool", "pools"),
            "quota pool of load-balancer",
        ),
        (
            resource(
                "OS::Octavia::HealthMonitor", "pool: p, type: TCP, delay: 1, max_retries: 1, timeout: 1"
            ),
            balancers("health_monitor", "healthmonitors"),
            "quota health_monitor of load-balancer",
        ),
        (
            resource("OS::Octavia::L7Policy", "listener: l, action: REJECT"),
            balancers("l7policy", "l7policies"),
            "quota l7policy of load-balancer",
        ),
        (
            resource("OS::Octavia::L7Rule", "l7policy: p, type: PATH, compare_type: EQUAL_TO, value: /a"),
            balancers("l7rule", "l7policies", rules=[{}]),
            "quota l7rule of load-balancer",
        ),
        (
            resource("OS::Manila::ShareNetwork"),
            {f"shared-file-system /quota-sets/{PROJECT}/detail": quotas(share_networks=0)},
            "quota share_networks of shared-file-system",
        ),
        (
            resource("OS::Manila::Share", "share_protocol: NFS, size: 5"),
            {f"shared-file-system /quota-sets/{PROJECT}/detail": quotas(shares=1, gigabytes=4)},
            "quota gigabytes of shared-file-system: 5 needed, 4 left",
        ),
        (
            resource("OS::Designate::Zone", "name: example.com., email: a@example.com"),
            {f"dns /quotas/{PROJECT}": {"zones": 1}, "dns /zones": [{}]},
            "quota zones of dns",
        ),
        (
            resource("OS::Barbican::Secret", "payload: x"),
            {"key-manager /quotas": {"secrets": 4}, "key-manager /secrets": {"total": 4}},
            "quota secrets of key-manager",
        ),
        (
            resource("OS::Barbican::GenericContainer"),
            {"key-manager /quotas": {"containers": 4}, "key-manager /containers": {"total": 4}},
            "quota containers of key-manager",
        ),
        (
            resource("OS::Barbican::Order", "type: key, algorithm: aes, bit_length: 256, mode: cbc"),
            {"key-manager /quotas": {"orders": 4}, "key-manager /orders": {"total": 4}},
            "quota orders of key-manager",
        ),
    ],
)
def test_a_quota_that_is_exceeded_is_found(resources: str, answers: Mapping[str, Json], message: str) -> None:
    findings = found(resources, answers)
    messages = message.split("; ")
    assert len(findings) == len(messages)
    for finding, words in zip(findings, messages, strict=True):
        assert finding.message.startswith(words)
        assert finding.certainty is Certainty.CERTAIN
        assert finding.path[0] == "resources"
    assert obstacles(findings) == findings


@pytest.mark.parametrize(
    ("resources", "answers"),
    [
        (server(), {NOVA: quotas(instances=1, cores=2, ram=512)}),
        (server(), {NOVA: {"cores": {"limit": -1, "in_use": 9, "reserved": 0}}}),
        # The service does not tell, or has no such quota.
        (server(), {}),
        (volume("size: 5, volume_type: fast"), {CINDER: quotas(volumes=1)}),
        (server(networks="[{port: p}]"), {NEUTRON: quotas(port=0)}),
        # The service counts the port of an interface, but does not refuse it.
        (resource("OS::Neutron::RouterInterface", "router: r, subnet: s"), {NEUTRON: quotas(port=0)}),
        # An administrator makes it for another project, or user.
        (resource("OS::Neutron::Net", "tenant_id: other"), {NEUTRON: quotas(network=0)}),
        (
            "x: {type: OS::Heat::Value, properties: {value: other}}\n"
            + resource("OS::Neutron::Router", "tenant_id: {get_attr: [x, value]}"),
            {NEUTRON: quotas(router=0)},
        ),
        (
            resource("OS::Nova::KeyPair", "name: k, user: other"),
            {NOVA: {"key_pairs": {"limit": 0, "in_use": 0, "reserved": 0}}, "compute /os-keypairs": []},
        ),
        # Nothing is made of what exists.
        (
            "s: {type: OS::Nova::Server, external_id: e, properties: {flavor: small}}\n",
            {NOVA: quotas(instances=0)},
        ),
    ],
)
def test_a_quota_that_suffices_is_none(resources: str, answers: Mapping[str, Json]) -> None:
    assert found(resources, answers) == []


def test_the_finding_names_the_resource_with_which_the_quota_is_exceeded() -> None:
    servers = "".join(server(f"s{number}") for number in range(9))
    [finding] = found(servers, {NOVA: quotas(cores=13)})
    assert finding.path == ("resources", "s6")
    assert (finding.needed, finding.available) == ("18", "13")


def test_an_amount_that_only_a_step_knows_is_said() -> None:
    resources = (
        "x: {type: OS::Heat::Value, properties: {value: 5}}\n"
        + volume("size: {get_attr: [x, value]}")
        + volume("size: 3", "w")
    )
    [finding] = found(resources, {CINDER: quotas(gigabytes=4)})
    assert finding.certainty is Certainty.NOT_KNOWN
    assert finding.message == (
        "quota gigabytes of block-storage: at least 3 needed, 4 left; the rest is not known before a step"
    )
    assert obstacles([finding]) == []


def test_a_flavor_of_the_template_and_one_that_is_not_unique() -> None:
    flavor = "f: {type: OS::Nova::Flavor, properties: {ram: 600, vcpus: 3}}\n"
    [finding] = found(flavor + server(flavor="{get_resource: f}"), {NOVA: quotas(cores=2)})
    assert finding.needed == "3"
    assert [f.certainty for f in found(server(flavor="twice"), {NOVA: quotas(cores=0)})] == ["not known"]


def test_members_of_a_group_and_nested_stacks_count() -> None:
    group = (
        "g: {type: OS::Heat::ResourceGroup, properties: {count: 4, resource_def: "
        "{type: OS::Cinder::Volume, properties: {size: 2}}}}\n"
    )
    [finding] = found(group, {CINDER: quotas(gigabytes=5)})
    assert finding.needed == "8"
    assert finding.path[:2] == ("resources", "g")
    child = {"heat_template_version": "2018-08-31", "resources": yaml.safe_load(volume("size: 9"))}
    [finding] = found(
        "c: {type: c.yaml}", {CINDER: quotas(gigabytes=5)}, files={"c.yaml": yaml.safe_dump(child)}
    )
    assert finding.path == ("resources", "c", "resources", "v")


GIGABYTES = {CINDER: quotas(gigabytes=10)}


def changed(
    before: str, after: str, replaced: tuple[str, ...] = (), *, are_retained: bool = False
) -> list[CloudFinding]:
    """The findings for an update of volumes, with 10 GiB left.

    :param are_retained: the old volumes stay.
    """
    old, new = (next(iter(parts_of_creation(compiled(text).plan, {}, REGISTRY))) for text in (before, after))
    present = {
        name: resource
        for name, resource in old.after.items()
        if name not in new.after or name in replaced or resource.properties != new.after[name].properties
    }
    planned = PlannedStack(
        KnownStack(new.after),
        created=frozenset(new.after.keys() - old.after.keys()),
        replaced=frozenset(replaced),
    )
    types = {**old.types, **new.types}
    gone = {
        name: (types[volume.type], name)
        for name, volume in present.items()
        if not are_retained and (name not in new.after or name in replaced)
    }
    part = PlannedPart((), planned, types, present, gone)
    return list(find_exceeded([part], KnownCloud({**SEEN, **GIGABYTES})))


@pytest.mark.parametrize(
    ("before", "after", "replaced", "needed", "certainty"),
    [
        # In place: the difference counts.
        (volume("size: 20"), volume("size: 30"), (), "", ""),
        (volume("size: 20"), volume("size: 31"), (), "11", "certain"),
        # Both exist for a while, whatever else returns.
        (volume("size: 9"), volume("size: 11"), ("v",), "11", "certain"),
        (volume("size: 11"), volume("size: 10"), ("v",), "", ""),
        # What is deleted may be gone before, or not.
        (volume("size: 9", "w"), volume("size: 11"), (), "11", "likely"),
        (volume("size: 1", "w"), volume("size: 12"), (), "11", "certain"),
        (volume("size: 9", "w") + volume("size: 9"), volume("size: 11"), ("v",), "11", "likely"),
    ],
)
def test_an_update_needs_its_peak(
    before: str, after: str, replaced: tuple[str, ...], needed: str, certainty: str
) -> None:
    findings = changed(before, after, replaced)
    assert [(finding.needed, finding.certainty.value) for finding in findings] == (
        [(needed, certainty)] if needed else []
    )


def test_what_is_retained_gives_nothing_back() -> None:
    for before, replaced in ((volume("size: 9", "w"), ()), (volume("size: 9"), ("v",))):
        [finding] = changed(before, volume("size: 11"), replaced, are_retained=True)
        assert (finding.needed, finding.certainty.value) == ("11", "certain")
    assert changed(volume("size: 9"), volume("size: 10"), ("v",), are_retained=True) == []
