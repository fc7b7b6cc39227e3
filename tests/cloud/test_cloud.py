"""The cloud of the tests itself: it works, and a Stoker works on it."""

import json
import signal
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace

import pytest
from harness import proctree
from harness.cloud.project import Project
from harness.cloud.server import CloudServer
from harness.cloud.stacks import WITHIN, Stacks
from harness.waiting import wait_for
from openstack.connection import Connection

Json = typing.Any


@pytest.mark.long
def test_a_server_with_network_and_volume_is_made_seen_and_removed(project: Project) -> None:
    c = project.connection
    assert project.leftovers() == {}
    network = c.network.create_network(name="net")
    c.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.7.0.0/24", name="subnet")
    volume = c.block_storage.create_volume(size=1, name="volume")
    server = c.compute.create_server(
        name="server",
        image_id=c.image.find_image("cirros").id,
        flavor_id=c.compute.find_flavor("m1.tiny").id,
        networks=[{"uuid": network.id}],
    )
    server = c.compute.wait_for_server(server, interval=0.2)
    [address] = server.addresses["net"]
    assert address["addr"].startswith("10.7.0.")
    c.block_storage.wait_for_status(volume, "available", interval=0.2)
    leftovers = project.leftovers()
    assert leftovers.pop("ports")
    assert leftovers == {
        "servers": ["server"],
        "volumes": ["volume"],
        "subnets": ["subnet"],
        "networks": ["net"],
    }
    project.clean()
    assert project.leftovers() == {}


LISTS: Mapping[str, Callable[[Connection, str], Iterable[Json]]] = {
    "alarms": lambda c, _: (SimpleNamespace(name=alarm["name"]) for alarm in c.alarm.get("/alarms").json()),
    "load balancers": lambda c, _: c.load_balancer.load_balancers(),
    "servers": lambda c, _: c.compute.servers(details=False),
    "server groups": lambda c, _: c.compute.server_groups(),
    "key pairs": lambda c, _: c.compute.keypairs(),
    "backups": lambda c, _: c.block_storage.backups(details=False),
    "snapshots": lambda c, _: c.block_storage.snapshots(details=False),
    "volumes": lambda c, _: c.block_storage.volumes(details=False),
    "images": lambda c, project: c.image.images(owner=project),
    "floating IPs": lambda c, project: c.network.ips(project_id=project),
    "routers": lambda c, project: c.network.routers(project_id=project),
    "trunks": lambda c, project: c.network.trunks(project_id=project),
    "ports": lambda c, project: c.network.ports(project_id=project),
    "subnets": lambda c, project: c.network.subnets(project_id=project),
    "networks": lambda c, project: c.network.networks(project_id=project),
    "cron triggers": lambda c, _: c.workflow.cron_triggers(),
    "executions": lambda c, _: c.workflow.executions(),
    "workflows": lambda c, _: c.workflow.workflows(),
    "DNS zones": lambda c, _: c.dns.zones(),
    "subnet pools": lambda c, project: c.network.subnet_pools(project_id=project),
    "address scopes": lambda c, project: c.network.address_scopes(project_id=project),
    "address groups": lambda c, project: c.network.address_groups(project_id=project),
    "security groups": lambda c, project: (
        group for group in c.network.security_groups(project_id=project) if group.name != "default"
    ),
    "QoS policies": lambda c, project: c.network.qos_policies(project_id=project),
}
"""Lists of the services, by the kinds of things that a project may have."""


def listed(project: Project) -> dict[str, list[str]]:
    """The things of a project as the services list them; kinds of which there are none are left out."""
    listed_names = {
        kind: sorted(member.name or member.id for member in members(project.connection, project.id))
        for kind, members in LISTS.items()
    }
    return {kind: names for kind, names in listed_names.items() if names}


def make_one_of_each_kind(project: Project) -> None:
    c = project.connection
    public = c.network.find_network("public")
    network = c.network.create_network(name="net")
    subnet = c.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.7.0.0/24", name="subnet")
    router = c.network.create_router(name="router", external_gateway_info={"network_id": public.id})
    c.network.add_interface_to_router(router, subnet=subnet.id)
    port = c.network.create_port(network_id=network.id, name="port")
    balancer = c.load_balancer.create_load_balancer(name="balancer", vip_subnet_id=subnet.id)
    c.network.create_ip(floating_network_id=public.id, port_id=port.id)
    c.network.create_trunk(port_id=c.network.create_port(network_id=network.id).id, name="trunk")
    scope = c.network.create_address_scope(name="scope", ip_version=4)
    c.network.create_subnet_pool(name="pool", prefixes=["10.8.0.0/16"], address_scope_id=scope.id)
    c.network.create_address_group(name="addresses", addresses=["192.0.2.0/24"])
    c.network.create_security_group(name="group")
    project.admin.network.create_qos_policy(name="slow", project_id=project.id)
    alarm = {"name": "alarm", "type": "event", "event_rule": {}}
    assert c.alarm.post("/alarms", json=alarm).status_code == 201
    c.dns.create_zone(name=f"{project.name}.test.", email="a@cloud.test")
    definition = {"version": "2.0", "flow": {"tasks": {"rest": {"action": "std.noop"}}}}
    c.workflow.create_workflow(definition=json.dumps(definition), scope="private")
    c.workflow.create_execution(workflow_name="flow")
    pattern = {"pattern": "0 0 1 1 *", "workflow_name": "flow"}
    assert c.workflow.post("/cron_triggers", json={"name": "yearly", **pattern}).status_code == 201
    c.compute.create_keypair(name="key")
    c.compute.create_server_group(name="servers", policy="soft-anti-affinity")
    c.image.create_image(name="image", data=b"x", disk_format="raw", container_format="bare")
    volume = c.block_storage.create_volume(size=1, name="volume")
    image = c.image.find_image("cirros")
    flavor = c.compute.find_flavor("m1.tiny")
    server = c.compute.create_server(
        name="server", image_id=image.id, flavor_id=flavor.id, networks=[{"port": port.id}]
    )
    c.block_storage.wait_for_status(volume, "available", interval=0.2)
    snapshot = c.block_storage.create_snapshot(volume_id=volume.id, name="snapshot")
    backup = c.block_storage.create_backup(volume_id=volume.id, name="backup")
    for created in (snapshot, backup):
        c.block_storage.wait_for_status(created, "available", interval=0.2, wait=WITHIN)
    c.compute.wait_for_server(server, interval=0.2, wait=WITHIN)
    c.load_balancer.wait_for_load_balancer(balancer.id, interval=0.2, wait=WITHIN)


@pytest.mark.long
@pytest.mark.usefixtures("balancers", "alarms", "names", "workflows")
def test_all_that_services_list_of_a_project_is_found_and_removed(project: Project) -> None:
    """The rows of the databases are what the lists show, for each kind."""
    make_one_of_each_kind(project)
    leftovers = {kind: sorted(names) for kind, names in project.leftovers().items()}
    assert set(leftovers) == set(LISTS)
    assert leftovers == listed(project)
    project.clean()
    assert (project.leftovers(), listed(project)) == ({}, {})


@pytest.mark.long
def test_a_server_that_never_ran_is_found_and_removed(project: Project) -> None:
    """Compute keeps it in a database of its own."""
    c = project.connection
    admin = project.admin
    huge = admin.compute.create_flavor(name=f"huge-{project.name}", ram=2**30, vcpus=1, disk=1)
    try:
        image = c.image.find_image("cirros")
        server = c.compute.create_server(name="never", image_id=image.id, flavor_id=huge.id, networks="none")
        assert project.leftovers()["servers"]
        wait_for(lambda: c.compute.get_server(server.id).status == "ERROR", WITHIN)
        assert project.leftovers() == {"servers": ["never"]}
        project.clean()
    finally:
        admin.compute.delete_flavor(huge)
    assert (project.leftovers(), [*LISTS["servers"](c, project.id)]) == ({}, [])


def test_limits_of_a_project_are_taken_back(project: Project) -> None:
    admin = project.admin
    before = [quotas(admin, project) for quotas in QUOTAS]
    admin.compute.update_quota_set(project.id, instances=1)
    admin.block_storage.update_quota_set(project.id, volumes=1)
    admin.network.update_quota(project.id, network=1)
    assert [quotas(admin, project) for quotas in QUOTAS] == [1, 1, 1]
    assert project.leftovers() == {}
    project.clean()
    assert [quotas(admin, project) for quotas in QUOTAS] == before == [-1, -1, -1]


QUOTAS: Sequence[Callable[[Connection, Project], int]] = (
    lambda c, project: c.compute.get_quota_set(project.id).instances,
    lambda c, project: c.block_storage.get_quota_set(project.id).volumes,
    lambda c, project: c.network.get_quota(project.id).networks,
)


def test_a_stack_is_created_with_a_token_of_the_project(stacks: Stacks) -> None:
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {"word": {"type": "OS::Heat::RandomString", "properties": {"length": 12}}},
        "outputs": {"word": {"value": {"get_attr": ["word", "value"]}}},
    }
    stack = stacks.create("words", template)
    assert len(stack.outputs()["word"]) == 12
    stack.delete()
    assert stacks.project.leftovers() == {}


@pytest.mark.long
def test_a_cloud_whose_program_is_killed_leaves_no_process_behind() -> None:
    with CloudServer() as server:
        assert server.cloud.admin.compute.find_flavor("m1.tiny")
        procs = proctree.tree(server.process.pid)
        assert len(procs) > 12  # Eleven programs of the services, the database, the broker.
        folders = {path.name.rpartition("-")[0] for path in server.directory.iterdir()}
        assert {"stoker-cloud-mariadb", "stoker-rabbitmq"} <= folders, "what they write is removed with it"
        server.process.send(signal.SIGKILL)
        assert proctree.wait_gone(procs, 180.0) == []
