"""The cloud of the tests itself: it works, and a Stoker works on it."""

import signal

from harness import proctree
from harness.cloud.project import Project
from harness.cloud.server import CloudServer
from harness.cloud.stacks import Stacks


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
    left = project.leftovers()
    assert left.pop("ports")
    assert left == {
        "servers": ["server"],
        "volumes": ["volume"],
        "subnets": ["subnet"],
        "networks": ["net"],
    }
    project.clean()
    assert project.leftovers() == {}


def test_what_is_left_in_a_project_is_found_and_removed_kind_by_kind(project: Project) -> None:
    c = project.connection
    public = c.network.find_network("public")
    network = c.network.create_network(name="net")
    subnet = c.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.7.0.0/24", name="subnet")
    router = c.network.create_router(name="router", external_gateway_info={"network_id": public.id})
    c.network.add_interface_to_router(router, subnet=subnet.id)
    port = c.network.create_port(network_id=network.id, name="port")
    c.network.create_ip(floating_network_id=public.id, port_id=port.id)
    c.network.create_security_group(name="group")
    c.compute.create_keypair(name="key")
    c.compute.create_server_group(name="servers", policy="soft-anti-affinity")
    c.image.create_image(name="image", data=b"x", disk_format="raw", container_format="bare")
    assert {
        "floating IPs",
        "routers",
        "ports",
        "security groups",
        "key pairs",
        "server groups",
        "images",
    } <= {*project.leftovers()}
    project.clean()
    assert project.leftovers() == {}


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


def test_a_cloud_whose_program_is_killed_leaves_no_process_behind() -> None:
    with CloudServer() as server:
        assert server.cloud.admin.compute.find_flavor("m1.tiny")
        procs = proctree.tree(server.process.pid)
        assert len(procs) > 12  # Eleven programs of the services, the database, the broker.
        server.process.send(signal.SIGKILL)
        assert proctree.wait_gone(procs, 30.0) == []
