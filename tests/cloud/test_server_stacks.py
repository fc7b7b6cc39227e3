"""Stacks of servers on a real cloud: kept, handed to another stack, made of what is there, broken."""

import json
import typing

from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.site import IMAGE, Site
from harness.cloud.stacks import WITHIN, Stack, Stacks
from harness.waiting import wait_for

Json = typing.Any
VERSION = "2018-08-31"
SERVER: Json = {
    "type": "OS::Nova::Server",
    "properties": {
        "image": IMAGE,
        "flavor": "m1.tiny",
        "metadata": {"colour": "blue"},
        "networks": [{"allocate_network": "none"}],
    },
}
NET = {"get_resource": "net"}
ON_A_PORT: Json = {
    "heat_template_version": VERSION,
    "resources": {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {"network": NET, "cidr": "10.9.0.0/24"}},
        "port": {
            "type": "OS::Neutron::Port",
            "depends_on": "subnet",
            "properties": {"network": NET},
        },
        "server": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": IMAGE,
                "flavor": "m1.tiny",
                "networks": [{"port": {"get_resource": "port"}}],
            },
        },
    },
}


def one_server(**properties: Json) -> Json:
    server = {**SERVER, "properties": {**SERVER["properties"], **properties}}
    return {"heat_template_version": VERSION, "resources": {"server": server}}


def images(project: Project) -> list[str]:
    """Ids of the project's own images."""
    return [image.id for image in project.connection.image.images(owner=project.id)]


def test_a_snapshot_of_a_stack_is_an_image_that_a_restoration_rebuilds_the_server_of(
    stacks: Stacks, project: Project
) -> None:
    stack = stacks.create("kept", one_server())
    server = stack.physical_id("server")
    answer = stacks.call("POST", f"{stack.path}/snapshots", {"name": "first"})
    assert answer.status == 200, answer
    stack.wait("SNAPSHOT_COMPLETE")
    [image] = images(project)
    assert project.connection.image.get_image(image).status == "active"
    stack.update(one_server(metadata={"colour": "red"}))
    assert project.connection.compute.get_server(server).metadata == {"colour": "red"}

    path = f"{stack.path}/snapshots/{answer.body['id']}"
    assert stacks.call("POST", f"{path}/restore").status == 202
    stack.wait("RESTORE_COMPLETE")
    restored = project.connection.compute.get_server(server)
    assert (stack.physical_id("server"), restored.status) == (server, "ACTIVE")
    assert (restored.image.id, restored.metadata) == (image, {"colour": "blue"})

    assert stacks.call("DELETE", path).status == 204
    wait_for(lambda: stacks.call("GET", path).status == 404, WITHIN)
    assert images(project) == []
    stack.delete()
    assert project.leftovers() == {}


def test_what_is_deleted_leaves_its_copy_where_the_template_says_so(stacks: Stacks, project: Project) -> None:
    template = one_server()
    template["resources"]["volume"] = {"type": "AWS::EC2::Volume", "properties": {"AvailabilityZone": "nova"}}
    template["resources"]["volume"]["properties"]["Size"] = "1"
    for resource in template["resources"].values():
        resource["deletion_policy"] = "Snapshot"
    stack = stacks.create("copied", template)
    volume = stack.physical_id("volume")
    stack.delete()
    [image] = images(project)
    assert project.connection.image.get_image(image).status == "active"
    [backup] = project.connection.block_storage.backups()
    assert (backup.volume_id, backup.status) == (volume, "available")
    assert list(project.connection.compute.servers()) == []
    assert list(project.connection.block_storage.volumes()) == []


def test_a_server_that_one_stack_abandons_is_adopted_by_another(stacks: Stacks, project: Project) -> None:
    template = one_server()
    first = stacks.create("before", template)
    server = first.physical_id("server")
    abandoned = stacks.call("DELETE", f"{first.path}/abandon")
    assert abandoned.status == 200, abandoned
    assert [item.id for item in project.connection.compute.servers()] == [server]

    adopted = {"stack_name": "after", "adopt_stack_data": json.dumps(abandoned.body), "timeout_mins": 60}
    answer = stacks.call("POST", "/stacks", adopted)
    assert answer.status == 201, answer
    second = Stack(stacks, f"/stacks/after/{answer.body['stack']['id']}")
    second.wait("ADOPT_COMPLETE")
    assert second.physical_id("server") == server
    assert second.resource("server")["attributes"]["show"]["metadata"] == {"colour": "blue"}
    second.update(one_server(metadata={"colour": "red"}))
    assert project.connection.compute.get_server(server).metadata == {"colour": "red"}
    second.delete()
    assert project.leftovers() == {}


def test_an_external_server_on_an_external_network_is_read_and_left_alone(
    stacks: Stacks, project: Project
) -> None:
    site = Site(project)
    server = site.server().create()
    template = {
        "heat_template_version": VERSION,
        "resources": {
            "net": {"type": "OS::Neutron::Net", "external_id": site.network.id},
            "server": {**SERVER, "external_id": server.id},
            "port": {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}},
        },
        "outputs": {
            "net": {"value": {"get_attr": ["net", "name"]}},
            "address": {"value": {"get_attr": ["server", "first_address"]}},
        },
    }
    stack = stacks.create("around", template)
    assert stack.outputs() == {"net": "net", "address": server.attribute("first_address")}
    port = project.connection.network.get_port(stack.physical_id("port"))
    assert port.network_id == site.network.id
    assert stack.physical_id("server") == server.id
    stack.action("check")
    stack.delete()
    assert site.server_view(server).status == "ACTIVE"
    assert len(site.ports()) == 1

    missing = {**template["resources"]["net"], "external_id": port.id}
    nothing = stacks.start("nothing", {"heat_template_version": VERSION, "resources": {"net": missing}})
    nothing.wait("CREATE_FAILED")
    assert "network 404" in nothing.reasons()["net"]


def test_an_unhealthy_server_in_error_gives_its_port_to_its_replacement(
    stacks: Stacks, project: Project, cloud: Cloud
) -> None:
    stack = stacks.create("broken", ON_A_PORT)
    old = stack.physical_id("server")
    port = stack.physical_id("port")
    cloud.admin.compute.reset_server_state(old, "error")
    answer = stacks.call("PATCH", f"{stack.path}/resources/server", {"mark_unhealthy": True})
    assert answer.status == 200, answer
    stack.update(ON_A_PORT)
    new = stack.physical_id("server")
    assert new != old
    assert project.connection.network.get_port(port).device_id == new
    stack.delete()
    assert project.leftovers() == {}
