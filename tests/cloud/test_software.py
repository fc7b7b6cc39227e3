"""Software configs and deployments with a server of Nova's."""

import json
import pathlib
import typing

from harness.cloud.project import Project
from harness.cloud.site import FLAVOR, IMAGE
from harness.cloud.stacks import WITHIN, Stacks
from harness.guests.played import PlayedServers, user_data_parts
from harness.waiting import wait_for

Json = typing.Any


APPLIED = '#!/bin/sh\necho "Hello, $name"\nprintf 7 > $heat_outputs_path.answer\n'


def test_a_servers_agents_get_its_config_and_end_the_wait_of_its_deployment(
    stacks: Stacks, project: Project, tmp_path: pathlib.Path
) -> None:
    resources: Json = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "net"}, "cidr": "10.91.0.0/24"},
        },
        "script": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "#!/bin/sh\necho hello\n"}},
        "server": {
            "type": "OS::Nova::Server",
            "depends_on": "subnet",
            "properties": {
                "image": IMAGE,
                "flavor": FLAVOR,
                "networks": [{"network": {"get_resource": "net"}}],
                "user_data_format": "SOFTWARE_CONFIG",
                "user_data": {"get_resource": "script"},
            },
        },
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {
                "group": "script",
                "config": APPLIED,
                "inputs": [{"name": "name"}],
                "outputs": [{"name": "answer"}],
            },
        },
        "deployment": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": {"get_resource": "server"},
                "input_values": {"name": {"get_attr": ["server", "name"]}},
                "actions": ["CREATE", "DELETE"],
            },
        },
    }
    outputs = {
        "said": {"value": {"get_attr": ["deployment", "deploy_stdout"]}},
        "answer": {"value": {"get_attr": ["deployment", "answer"]}},
        "keys": {"value": {"get_attr": ["server", "os_collect_config"]}},
    }
    template = {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}
    stack = stacks.start("s", template)

    def deployments() -> list[Json]:
        deployments_of_stack: list[Json] = stacks.call("GET", "/software_deployments").body[
            "software_deployments"
        ]
        return deployments_of_stack

    wait_for(lambda: [item["status"] for item in deployments()] == ["IN_PROGRESS"], WITHIN)
    server_id = stack.physical_id("server")
    assert deployments()[0]["server_id"] == server_id
    parts = user_data_parts(project, server_id)
    assert parts[None] == "#!/bin/sh\necho hello\n"
    collected = json.loads(parts["cfn-init-data"])["os-collect-config"]
    assert (collected["collectors"], collected["cfn"]["path"]) == (["ec2", "cfn", "local"], "server.Metadata")
    PlayedServers(tmp_path, project, ()).poll(server_id)
    stack.wait("CREATE_COMPLETE")
    server = project.connection.compute.get_server(server_id)
    assert stack.outputs() == {"said": f"Hello, {server.name}\n", "answer": "7", "keys": collected}
    # The server is gone, so it is not waited for.
    project.connection.compute.delete_server(server_id)
    wait_for(lambda: not list(project.connection.compute.servers()), WITHIN)
    stack.delete()
    assert deployments() == []
    assert project.leftovers() == {}
