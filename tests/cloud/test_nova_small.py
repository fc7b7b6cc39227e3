"""Key pairs, server groups and flavors on a real Nova: what changes do, and what is found again."""

import dataclasses
import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.step_driver import Driven
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.service import Conflict

Json = typing.Any
KEYS = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + letter * 43 + f" {letter}@example.org" for letter in ("A", "B")
]


def _began(driven: Driven) -> Poll:
    """Run the first step, and keep what a conductor would keep of it."""
    step = driven.plugin.handle_create(driven.target, driven.context)
    assert isinstance(step, Poll)
    driven.target = dataclasses.replace(driven.target, data=step.data or {})
    return step


def test_changes_of_a_key_pair(make: Maker, project: Project) -> None:
    pair = make("KeyPair", name="mine", public_key=KEYS[0])
    assert project.connection.compute.get_keypair("mine").public_key == KEYS[0]
    assert (pair.attribute("public_key"), pair.attribute("private_key")) == (KEYS[0], "")
    for name, value in (
        ("name", "other"),
        ("public_key", KEYS[1]),
        ("save_private_key", True),
        ("type", "x509"),
        ("user", "somebody"),
    ):
        assert pair.update(**{name: value}) == "replace", name
    pair.act("check")
    pair.delete()
    pair.delete()
    with pytest.raises(PermanentError, match="the key pair mine does not exist"):
        pair.act("check")
    assert pair.plugin.needs_replace_failed(pair.target, pair.context)


@pytest.mark.parametrize("save", [True, False])
def test_a_generated_key_pair(make: Maker, project: Project, *, save: bool) -> None:
    pair = make("KeyPair", name="mine", save_private_key=save)
    assert pair.attribute("private_key").startswith("-----BEGIN") is save
    assert "private_key" not in pair.attribute("show")
    assert pair.attribute("public_key") == project.connection.compute.get_keypair("mine").public_key


def test_a_key_pair_of_somebody_else_is_left_alone(make: Maker, project: Project) -> None:
    compute = project.connection.compute
    compute.create_keypair(name="mine", public_key=KEYS[0])
    pair = make.new("KeyPair", name="mine", save_private_key=True)
    with pytest.raises(Conflict, match="another key pair has the name mine"):
        pair.create()
    pair.target = dataclasses.replace(pair.target, attempt=2)
    assert pair.plugin.find_created(pair.target.key, pair.target, pair.context) is None
    with pytest.raises(Conflict):
        pair.create()
    pair.delete()
    assert compute.get_keypair("mine").public_key == KEYS[0]


@pytest.mark.parametrize("properties", [{"save_private_key": True}, {}, {"public_key": KEYS[0]}])
def test_a_lost_creation_of_a_key_pair_is_found_again(
    make: Maker, project: Project, properties: Json
) -> None:
    """The answer was lost with the private key; so the pair is made again, where that is to be kept."""
    pair = make.new("KeyPair", name="mine", **properties)
    step = _began(pair)
    pair.plugin.check_create_complete(pair.target, step.progress, pair.context)
    lost = project.connection.compute.get_keypair("mine").public_key
    pair.target = dataclasses.replace(pair.target, attempt=2)
    assert pair.plugin.find_created(pair.target.key, pair.target, pair.context) == "mine"
    done = pair.plugin.check_create_complete(pair.target, step.progress, pair.context)
    assert done.physical_id == "mine"
    public_key = project.connection.compute.get_keypair("mine").public_key
    assert (public_key == lost) is ("save_private_key" not in properties)
    assert done.data is not None
    assert ("private_key" in done.data) is ("save_private_key" in properties)


def test_a_replacement_of_a_key_pair_has_its_name(make: Maker, project: Project) -> None:
    compute = project.connection.compute
    old = make("KeyPair", name="mine", public_key=KEYS[0])
    old.plugin.prepare_for_replace(old.target, old.context)
    old.plugin.prepare_for_replace(old.target, old.context)
    new = make("KeyPair", name="mine", public_key=KEYS[1])
    old.delete()
    assert compute.get_keypair("mine").public_key == KEYS[1]
    old.plugin.restore_after_replace(old.target, old.context)
    old.plugin.restore_after_replace(old.target, old.context)
    new.delete()
    assert compute.get_keypair("mine").public_key == KEYS[0]
    old.delete()
    assert list(compute.keypairs()) == []


def test_a_key_pair_for_another_user(make_as_operator: Maker, project: Project) -> None:
    pair = make_as_operator("KeyPair", name="theirs", public_key=KEYS[0], user=project.name)
    assert [keypair.name for keypair in project.connection.compute.keypairs()] == ["theirs"]
    pair.act("check")
    pair.delete()
    assert list(project.connection.compute.keypairs()) == []


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"name": "mine", "public_key": "no key"}, r"compute 400: .*req-"),
        ({"name": "mine", "user": "nobody"}, r"nobody|identity 403"),
    ],
)
def test_wrong_key_pairs(make: Maker, properties: Json, why: str) -> None:
    with pytest.raises(PermanentError, match=why):
        make("KeyPair", **properties)


def test_changes_of_a_server_group(make: Maker, project: Project) -> None:
    group = make("ServerGroup", rules={"max_server_per_host": 2})
    remote = project.connection.compute.get_server_group(group.id)
    assert (remote.name, remote.policy, remote.rules) == (
        group.target.physical_name,
        "anti-affinity",
        {"max_server_per_host": 2},
    )
    assert group.update(name="other") == "replace"
    assert group.update(rules={"max_server_per_host": 3}) == "replace"
    assert group.update(rules=None, policies=["affinity"]) == "replace"
    group.act("check")
    group.delete()
    group.delete()
    with pytest.raises(PermanentError, match="compute 404"):
        group.act("check")


def test_a_lost_creation_of_a_server_group_is_found_again(make: Maker, project: Project) -> None:
    compute = project.connection.compute
    foreign = compute.create_server_group(name="web", policy="affinity")
    group = make.new("ServerGroup", name="web")
    step = _began(group)
    assert group.plugin.find_created(group.target.key, group.target, group.context) is None
    group.plugin.check_create_complete(group.target, step.progress, group.context)
    ids = {item.id for item in compute.server_groups()}
    assert len(ids) == 2
    group.target = dataclasses.replace(group.target, attempt=2)
    again = group.plugin.check_create_complete(group.target, step.progress, group.context)
    assert {again.physical_id, foreign.id} == ids == {item.id for item in compute.server_groups()}
    assert group.plugin.find_created(group.target.key, group.target, group.context) == again.physical_id


def test_two_server_groups_of_one_name_are_made_at_once(make: Maker, project: Project) -> None:
    first, second = (make.new("ServerGroup", name="web") for _ in range(2))
    steps = [_began(first), _began(second)]
    ids = [
        group.plugin.check_create_complete(group.target, step.progress, group.context).physical_id
        for group, step in zip((first, second), steps, strict=True)
    ]
    assert {item.id for item in project.connection.compute.server_groups()} == set(ids)
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"policies": ["affinity", "anti-affinity"]}, "exactly one policy"),
        (
            {"policies": ["affinity"], "rules": {"max_server_per_host": 2}},
            "for the policy anti-affinity only",
        ),
        ({"policies": ["none"]}, "policies"),
    ],
)
def test_wrong_server_groups(make: Maker, properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        make.new("ServerGroup", **properties)


def test_changes_of_a_flavor(make_as_operator: Maker, operator: Project, project: Project) -> None:
    flavor = make_as_operator(
        "Flavor", ram=64, vcpus=1, extra_specs={"a:b": 1}, is_public=False, tenants=[project.name]
    )
    compute = operator.connection.compute

    def projects() -> list[str]:
        return sorted(item["tenant_id"] for item in compute.get_flavor_access(flavor.id))

    assert (flavor.attribute("is_public"), flavor.attribute("extra_specs")) == (False, {"a:b": "1"})
    assert projects() == [project.id]
    assert flavor.update(extra_specs={"c:d": "2"}) == "updated"
    assert compute.fetch_flavor_extra_specs(flavor.id).extra_specs == {"c:d": "2"}
    assert flavor.plugin.live_properties(flavor.target, flavor.context) == {"extra_specs": {"c:d": "2"}}
    assert flavor.update(extra_specs=None) == "updated"
    assert flavor.attribute("extra_specs") == {}
    assert flavor.update(tenants=[operator.id, project.id]) == "updated"
    assert projects() == sorted([operator.id, project.id])
    assert flavor.update(tenants=[operator.name]) == "updated"
    assert projects() == [operator.id]
    for name, value in (
        ("ram", 128),
        ("vcpus", 2),
        ("disk", 1),
        ("swap", 1),
        ("ephemeral", 1),
        ("rxtx_factor", 2.0),
        ("name", "other"),
        ("flavorid", "other"),
    ):
        assert flavor.update(**{name: value}) == "replace", name
    flavor.act("check")
    flavor.delete()
    flavor.delete()
    with pytest.raises(PermanentError, match="compute 404"):
        flavor.act("check")


def test_a_flavor_that_is_not_public_is_for_the_stacks_project(
    make_as_operator: Maker, operator: Project
) -> None:
    flavor = make_as_operator.new("Flavor", ram=64, vcpus=1, is_public=False)
    stack = dataclasses.replace(flavor.target.stack, project_id=operator.id)
    flavor.target = dataclasses.replace(flavor.target, stack=stack)
    flavor.create()
    access = operator.connection.compute.get_flavor_access(flavor.id)
    assert [item["tenant_id"] for item in access] == [operator.id]
    flavor.delete()


@pytest.mark.parametrize("chosen", [{}, {"flavorid": "auto"}, {"flavorid": "own", "name": "own"}])
def test_a_lost_creation_of_a_flavor_is_found_again(
    make_as_operator: Maker, operator: Project, chosen: Json
) -> None:
    if chosen.get("flavorid") == "own":
        chosen = {"flavorid": f"id-{operator.name}", "name": f"name-{operator.name}"}
    flavor = make_as_operator("Flavor", ram=64, vcpus=1, **chosen)
    remote = operator.connection.compute.get_flavor(flavor.id)
    assert remote.description == mark_of(flavor.target.key)
    lost = dataclasses.replace(flavor.target, physical_id=None, data={}, attempt=2)
    assert flavor.plugin.find_created(lost.key, lost, flavor.context) == flavor.id
    again = make_as_operator.new("Flavor", ram=64, vcpus=1, **chosen)
    again.target = lost
    assert again.create().id == flavor.id
    again.delete()


def test_a_flavor_of_somebody_else_is_left_alone(make_as_operator: Maker, operator: Project) -> None:
    compute = operator.connection.compute
    foreign = compute.create_flavor(name=f"name-{operator.name}", ram=64, vcpus=1, disk=0)
    try:
        flavor = make_as_operator.new("Flavor", ram=64, vcpus=1, flavorid=foreign.id, name=foreign.name)
        flavor.target = dataclasses.replace(flavor.target, attempt=2)
        assert flavor.plugin.find_created(flavor.target.key, flavor.target, flavor.context) is None
        with pytest.raises(Conflict, match=r"compute 409: .*req-"):
            flavor.create()
        flavor.delete()
        assert compute.get_flavor(foreign.id).id == foreign.id
    finally:
        compute.delete_flavor(foreign)


def test_wrong_flavors(make: Maker, make_as_operator: Maker) -> None:
    with pytest.raises(PermanentError, match=r"compute 403: .*req-"):
        make("Flavor", ram=64, vcpus=1)
    with pytest.raises(PermanentError, match=r"compute 400: .*req-"):
        make_as_operator("Flavor", ram=-1, vcpus=1)
    with pytest.raises(PropertyError, match="only where is_public is false"):
        make_as_operator("Flavor", ram=64, vcpus=1, tenants=["demo"])


def test_changes_of_a_host_aggregate(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    compute = operator.connection.compute
    name = f"fast-{operator.name}"
    aggregate = make("HostAggregate", name=name, hosts=["cloud"], metadata={"ssd": True})
    remote = compute.get_aggregate(aggregate.id)
    assert (remote.name, remote.hosts, remote.metadata) == (name, ["cloud"], {"ssd": "True"})
    assert aggregate.plugin.live_properties(aggregate.target, aggregate.context)["hosts"] == ["cloud"]
    assert aggregate.update(hosts=None, metadata={"gpu": "1"}) == "updated"
    remote = compute.get_aggregate(aggregate.id)
    assert (remote.hosts, remote.metadata) == ([], {"gpu": "1"})
    assert aggregate.update(hosts=["cloud"]) == "updated"
    assert compute.get_aggregate(aggregate.id).hosts == ["cloud"]
    assert aggregate.update(hosts=None) == "updated"
    # A host with servers does not change its zone, and other tests have servers on it.
    assert aggregate.update(name=f"{name}-2", availability_zone=f"zone-{operator.name}") == "updated"
    live = aggregate.plugin.live_properties(aggregate.target, aggregate.context)
    assert live == {
        "name": f"{name}-2",
        "availability_zone": f"zone-{operator.name}",
        "hosts": [],
        "metadata": {"gpu": "1"},
    }
    aggregate.act("check")
    second = make.new("HostAggregate", name=f"{name}-2")
    with pytest.raises(PermanentError, match="compute 409"):
        second.create()
    aggregate.delete()
    aggregate.delete()
    assert compute.find_aggregate(f"{name}-2") is None


def test_limits_of_a_project(make_as_operator: Maker, operator: Project) -> None:
    compute = operator.connection.compute
    quota = make_as_operator("OS::Nova::Quota", project=operator.id, cores=9, fixed_ips=7, injected_files=3)
    assert compute.get_quota_set(operator.id).cores == 9
    assert quota.update(cores=10, instances=4) == "updated"
    limits = compute.get_quota_set(operator.id)
    assert (limits.cores, limits.instances) == (10, 4)
    quota.delete()
    quota.delete()
    assert compute.get_quota_set(operator.id).cores == -1
