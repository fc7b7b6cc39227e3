"""Requests are checked against the caller's cloud: custom constraints, and services that types need."""

import typing
import uuid
from collections.abc import Callable

import pytest
from client.serving import Answer
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import WITHIN, Stacks
from harness.cloud.stoker import stoker_on
from harness.waiting import wait_for

Json = typing.Any
Make = Callable[[Project], tuple[str, str]]
"""Makes a thing, or finds one: its id and its name."""
UNKNOWN = "9c6d1f7e-0000-4000-8000-00000000dead"


def validated(stacks: Stacks, check: str, value: str) -> Answer:
    """Answer of POST /validate for a parameter with this constraint and value."""
    declared = {"type": "string", "constraints": [{"custom_constraint": check}]}
    template = {"heat_template_version": "2018-08-31", "parameters": {"p": declared}}
    return stacks.call(
        "POST", "/validate", {"template": template, "environment": {"parameters": {"p": value}}}
    )


def refusal(ask: Callable[[], Answer]) -> str:
    """The text of a refusal.  A busy service may need more than its second: then it is asked again."""
    answers: list[Answer] = []

    def refused() -> bool:
        answers.append(ask())
        assert answers[-1].status in (200, 400), answers[-1]
        return answers[-1].status == 400

    wait_for(refused, WITHIN, lambda: answers[-1])
    return str(answers[-1].body["error"]["message"])


def refused(stacks: Stacks, check: str, value: str) -> str:
    """The text of the refusal of a parameter with this constraint and value."""
    return refusal(lambda: validated(stacks, check, value))


def both(resource: Json) -> tuple[str, str]:
    return str(resource.id), str(resource.name)


def network_of(project: Project) -> Json:
    c = project.connection
    return c.network.find_network("net") or c.network.create_network(name="net")


def subnet_of(project: Project) -> Json:
    c = project.connection
    subnet = c.network.find_subnet("sub")
    net = network_of(project).id
    return subnet or c.network.create_subnet(network_id=net, ip_version=4, cidr="10.9.0.0/24", name="sub")


def volume_of(project: Project) -> Json:
    c = project.connection
    volume = c.block_storage.create_volume(size=1, name="vol")
    return c.block_storage.wait_for_status(volume, "available", interval=0.2)


def snapshot_of(project: Project) -> Json:
    return project.connection.block_storage.create_snapshot(volume_id=volume_of(project).id, name="snap")


def key_of(project: Project) -> tuple[str, str]:
    keypair = project.connection.compute.create_keypair(name="key")
    return keypair.name, keypair.name


def server_of(project: Project) -> Json:
    c = project.connection
    return c.compute.create_server(
        name="box",
        image_id=c.image.find_image("cirros").id,
        flavor_id=c.compute.find_flavor("m1.tiny").id,
        networks="none",
    )


def type_of(project: Project) -> Json:
    return next(iter(project.connection.block_storage.types()))


MEMBERS: dict[str, Make] = {
    "cinder.snapshot": lambda p: both(snapshot_of(p)),
    "cinder.volume": lambda p: both(volume_of(p)),
    "cinder.vtype": lambda p: both(type_of(p)),
    "glance.image": lambda p: both(p.connection.image.find_image("cirros")),
    "neutron.address_scope": lambda p: both(
        p.connection.network.create_address_scope(name="scope", ip_version=4)
    ),
    "neutron.network": lambda p: both(network_of(p)),
    "neutron.port": lambda p: both(
        p.connection.network.create_port(network_id=network_of(p).id, name="port")
    ),
    "neutron.router": lambda p: both(p.connection.network.create_router(name="router")),
    "neutron.security_group": lambda p: both(p.connection.network.create_security_group(name="group")),
    "neutron.subnet": lambda p: both(subnet_of(p)),
    "neutron.subnetpool": lambda p: both(
        p.connection.network.create_subnet_pool(name="pool", prefixes=["10.8.0.0/16"])
    ),
    "nova.flavor": lambda p: both(p.connection.compute.find_flavor("m1.tiny")),
    "nova.keypair": key_of,
    "nova.server": lambda p: both(server_of(p)),
}
OPERATORS: dict[str, Make] = {
    "keystone.domain": lambda p: both(p.admin.identity.get_domain("default")),
    "keystone.project": lambda p: both(p.admin.identity.find_project("service")),
    "keystone.role": lambda p: both(p.admin.identity.find_role("member")),
    "keystone.service": lambda p: both(next(iter(p.admin.identity.services(type="compute")))),
    "keystone.user": lambda p: both(p.admin.identity.find_user("stoker")),
    "keystone.region": lambda p: ("RegionOne", "RegionOne"),
    "neutron.qos_policy": lambda p: both(p.connection.network.create_qos_policy(name=p.id)),
}


def balancer_of(project: Project) -> Json:
    octavia = project.connection.load_balancer
    balancer = octavia.create_load_balancer(name="balancer", vip_subnet_id=subnet_of(project).id)
    return octavia.wait_for_load_balancer(balancer.id, interval=0.2, wait=WITHIN)


def listener_of(project: Project) -> Json:
    octavia = project.connection.load_balancer
    balancer = balancer_of(project).id
    listener = octavia.create_listener(
        name="listener", load_balancer_id=balancer, protocol="HTTP", protocol_port=80
    )
    octavia.wait_for_load_balancer(balancer, interval=0.2, wait=WITHIN)
    return listener


def flavor_profile_of(project: Project) -> Json:
    data = {"provider_name": "amphora", "flavor_data": "{}"}
    return project.connection.load_balancer.create_flavor_profile(name=f"profile-{uuid.uuid4()}", **data)


def zone_profile_of(project: Project) -> Json:
    data = {"provider_name": "amphora", "availability_zone_data": "{}"}
    octavia = project.connection.load_balancer
    return octavia.create_availability_zone_profile(name=f"zones-{uuid.uuid4()}", **data)


def flavor_of(project: Project) -> Json:
    return project.connection.load_balancer.create_flavor(
        name=f"flavor-{uuid.uuid4()}", flavor_profile_id=flavor_profile_of(project).id
    )


def zone_of(project: Project) -> tuple[str, str]:
    zone = project.connection.load_balancer.create_availability_zone(
        name=f"zone-{uuid.uuid4()}", availability_zone_profile_id=zone_profile_of(project).id
    )
    return zone.name, zone.name


BALANCERS: dict[str, Make] = {
    "octavia.availabilityzone": zone_of,
    "octavia.availabilityzoneprofile": lambda p: both(zone_profile_of(p)),
    "octavia.flavor": lambda p: both(flavor_of(p)),
    "octavia.flavorprofile": lambda p: both(flavor_profile_of(p)),
    "octavia.l7policy": lambda p: both(
        p.connection.load_balancer.create_l7_policy(
            name="policy", listener_id=listener_of(p).id, action="REJECT"
        )
    ),
    "octavia.listener": lambda p: both(listener_of(p)),
    "octavia.loadbalancer": lambda p: both(balancer_of(p)),
    "octavia.pool": lambda p: both(
        p.connection.load_balancer.create_pool(
            name="pool",
            loadbalancer_id=balancer_of(p).id,
            protocol="HTTP",
            lb_algorithm="ROUND_ROBIN",
        )
    ),
}


def check_kind(stacks: Stacks, check: str, make: Make) -> None:
    identity, name = make(stacks.project)
    for value in (identity, name):
        assert validated(stacks, check, value).status == 200, value
    for value in ("no such thing", UNKNOWN, "..", "a/b?c=d&e"):
        reason = refused(stacks, check, value)
        assert reason.startswith(f"Parameter 'p' is invalid: Error validating value '{value}': The ")
        assert reason.endswith(f"({value}) could not be found.")


@pytest.mark.parametrize("check", MEMBERS)
def test_a_members_things_are_found_by_name_and_id(stacks: Stacks, check: str) -> None:
    check_kind(stacks, check, MEMBERS[check])


@pytest.mark.parametrize("check", OPERATORS)
def test_an_operators_things_are_found_by_name_and_id(operator_stacks: Stacks, check: str) -> None:
    check_kind(operator_stacks, check, OPERATORS[check])


@pytest.mark.long
@pytest.mark.usefixtures("balancers")
@pytest.mark.parametrize("check", BALANCERS)
def test_things_of_balancers_are_found_by_name_and_id(operator_stacks: Stacks, check: str) -> None:
    check_kind(operator_stacks, check, BALANCERS[check])


def test_a_user_is_found_by_name_and_domain(operator_stacks: Stacks) -> None:
    assert validated(operator_stacks, "keystone.user", "stoker{Default}").status == 200
    refused(operator_stacks, "keystone.user", "nobody{Default}")
    refused(operator_stacks, "keystone.user", "stoker{nowhere}")


def test_what_a_member_may_not_ask_is_left_to_the_step(stacks: Stacks) -> None:
    assert validated(stacks, "keystone.user", "whoever").status == 200


# Other tests start optional services in the same cloud; these services run in no cloud of the tests.
@pytest.mark.parametrize("check", ["trove.flavor", "ironic.node"])
def test_a_service_that_the_cloud_lacks_meets_no_constraint(stacks: Stacks, check: str) -> None:
    assert "the service catalog has no service of type" in refused(stacks, check, "x")


def test_things_of_other_projects_are_not_found(stacks: Stacks, other: Project) -> None:
    network = other.connection.network.create_network(name="theirs")
    foreign_stacks = Stacks(stacks.service, other)
    assert validated(foreign_stacks, "neutron.network", "theirs").status == 200
    for value in (network.id, "theirs"):
        assert "could not be found" in refused(stacks, "neutron.network", value)


def test_a_property_is_checked(stacks: Stacks) -> None:
    properties = {"network": "no such net", "cidr": "10.9.0.0/24"}
    resources = {"sub": {"type": "OS::Neutron::Subnet", "properties": properties}}
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    body = {"stack_name": "s", "template": template}
    assert refusal(lambda: stacks.call("POST", "/stacks/preview", body)) == (
        "Property error: : resources.sub.properties.network: : Error validating value 'no such net': The "
        "network (no such net) could not be found."
    )


def test_types_of_services_are_listed_where_the_catalog_has_them(
    stacks: Stacks, cloud: Cloud, tmp_path_factory: pytest.TempPathFactory
) -> None:
    clouds = {"OS::Neutron::Net", "OS::Cinder::Volume", "OS::Nova::KeyPair"}
    assert clouds <= set(stacks.call("GET", "/resource_types").body["resource_types"])
    folder = tmp_path_factory.mktemp("nowhere")
    with stoker_on(cloud, folder, "\n[clients]\nregion_name = Nowhere\n") as elsewhere:
        stacks_elsewhere = Stacks(elsewhere, stacks.project)
        listed = set(stacks_elsewhere.call("GET", "/resource_types").body["resource_types"])
        assert not clouds & listed
        assert "OS::Heat::None" in listed
        template = {"heat_template_version": "2018-08-31", "resources": {"n": {"type": "OS::Neutron::Net"}}}
        answer = stacks_elsewhere.call("POST", "/stacks", {"stack_name": "s", "template": template})
        assert answer.status == 400
        assert answer.body["error"]["type"] == "ResourceTypeUnavailable"
        assert answer.body["error"]["message"].startswith("HEAT-E99001 Service neutron is not available")
