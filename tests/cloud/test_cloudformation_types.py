"""Templates of CloudFormation's: servers, alone and in groups, on a real cloud."""

import base64
import pathlib
import typing
from collections.abc import Iterator

import requests
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.waiting import wait_for

Json = typing.Any
TEMPLATES = pathlib.Path(__file__).parent / "templates"
GIVEN = {"image": "cirros", "flavor": "m1.tiny"}
WITHIN = 180.0


def servers(project: Project, tier: str) -> dict[str, Json]:
    """The servers of a tier, by id, as administrators see them."""
    servers_of_project = project.connection.compute.servers()
    ids = [server.id for server in servers_of_project if server.metadata.get("tier") == tier]
    return {key: project.admin.compute.get_server(key) for key in ids}


def user_data(server: Json) -> str:
    return base64.b64decode(server.user_data).decode()


def addresses(servers_by_id: dict[str, Json]) -> set[str]:
    return set(_addresses(servers_by_id))


def _addresses(servers_by_id: dict[str, Json]) -> Iterator[str]:
    for server in servers_by_id.values():
        for entries in server.addresses.values():
            yield from (entry["addr"] for entry in entries)


def scale(stack: Stack, project: Project, size: int) -> None:
    """Signal as an alarm does, and wait until the group has as many servers as its list says."""
    answer = requests.post(stack.outputs()["AlarmUrl"], json={}, timeout=60)
    assert answer.ok, (answer.status_code, answer.text)
    wait_for(lambda: len(stack.outputs()["Servers"].split(",")) == size, WITHIN)
    assert len(servers(project, "web")) == size


def test_a_group_of_launched_servers_is_scaled_rolled_and_deleted(stacks: Stacks, project: Project) -> None:
    body = {"template": (TEMPLATES / "launched_servers.yaml").read_text(), "parameters": GIVEN}
    stack = stacks.create("launched", **body)
    outputs = stack.outputs()
    web = servers(project, "web")
    [balancer] = servers(project, "balancer").values()
    assert (len(web), {server.status for server in web.values()}) == (2, {"ACTIVE"})
    assert set(outputs["Servers"].split(",")) == addresses(web)
    assert {outputs["Address"]} == addresses({balancer.id: balancer})
    assert outputs["Zone"] == balancer.availability_zone == "nova"
    assert f"backends {outputs['Servers']}" in user_data(balancer)
    name = stack.resource("WebGroup")["physical_resource_id"]
    for server in web.values():
        assert "echo hello" in user_data(server)
        assert '"content": "hello"' in user_data(server), "the metadata of the launch configuration"
        assert server.metadata["metering.groupname"] == server.metadata["metering.AutoScalingGroupName"]
        assert server.metadata["metering.groupname"].startswith("launched-WebGroup-")
    assert name not in web

    stack.update(**body)
    assert set(servers(project, "web")) == set(web), "an update to the same template leaves everything"
    scale(stack, project, 3)
    assert set(web) < set(servers(project, "web"))

    stack.update(**{**body, "parameters": {**GIVEN, "Greeting": "good morning", "Size": 3}})
    rolled = servers(project, "web")
    assert len(rolled) == 3
    assert not set(web) & set(rolled), "another launch configuration replaces the servers"
    assert all("echo good morning" in user_data(server) for server in rolled.values())
    assert set(stack.outputs()["Servers"].split(",")) == addresses(rolled)

    [balancer] = servers(project, "balancer").values()
    parameters = {**GIVEN, "BalancerType": "m1.small", "Greeting": "good morning", "Size": 3}
    stack.update(**{**body, "parameters": parameters})
    [resized] = servers(project, "balancer").values()
    assert (resized.id, resized.flavor.name) == (balancer.id, "m1.small")
    assert set(servers(project, "web")) == set(rolled)
    stack.delete()
    assert project.leftovers() == {}


def test_servers_are_launched_like_a_server_that_is_there(stacks: Stacks, project: Project) -> None:
    model = {"get_resource": "model"}
    subnet = {"get_resource": "subnet"}

    def group(tier: str, **launch: Json) -> Json:
        sizes = {"MinSize": 1, "MaxSize": 2, "DesiredCapacity": 1, "AvailabilityZones": ["nova"]}
        properties = {
            **sizes,
            "VPCZoneIdentifier": [subnet],
            "Tags": [{"Key": "tier", "Value": tier}],
            **launch,
        }
        return {"type": "AWS::AutoScaling::AutoScalingGroup", "properties": properties}

    configuration = {"InstanceId": model, "InstanceType": "m1.small"}
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {
            "net": {"type": "OS::Neutron::Net"},
            "subnet": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "net"}, "cidr": "10.38.0.0/24"},
            },
            "key": {"type": "OS::Nova::KeyPair", "properties": {"name": "pair-of-the-model"}},
            "model": {
                "type": "AWS::EC2::Instance",
                "properties": {
                    "ImageId": "cirros",
                    "InstanceType": "m1.tiny",
                    "KeyName": {"get_resource": "key"},
                    "SubnetId": subnet,
                },
            },
            "like": group("like", InstanceId=model),
            "larger": group("larger", LaunchConfigurationName={"get_resource": "configuration"}),
            "configuration": {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": configuration},
        },
    }
    stack = stacks.create("likewise", template)
    model_server = project.admin.compute.get_server(stack.physical_id("model"))
    [like] = servers(project, "like").values()
    [larger] = servers(project, "larger").values()
    for server in (like, larger):
        assert (server.image.id, server.key_name) == (model_server.image.id, "pair-of-the-model")
        assert server.id != model_server.id
    assert [model_server.flavor.name, like.flavor.name, larger.flavor.name] == [
        "m1.tiny",
        "m1.tiny",
        "m1.small",
    ]

    template["resources"]["like"] = group("like", InstanceId="nobody")
    refused = stacks.call("PUT", stack.path, {"template": template})
    assert (refused.status, "The Server (nobody) could not be found" in str(refused.body)) == (400, True)
    stack.delete()
    assert project.leftovers() == {}


def rules(project: Project, group: str) -> set[tuple[Json, ...]]:
    """The rules for the traffic to the ports of a security group."""
    ingress_rules = project.connection.network.security_group_rules(
        security_group_id=group, direction="ingress"
    )
    return {(item.protocol, item.port_range_min, item.remote_ip_prefix) for item in ingress_rules}


def test_a_server_with_volumes_and_a_security_group(stacks: Stacks, project: Project) -> None:
    body = {"template": (TEMPLATES / "blog.yaml").read_text(), "parameters": GIVEN}
    stack = stacks.create("blog", **body)
    group = stack.physical_id("Web")
    server = stack.physical_id("Server")
    assert rules(project, group) == {
        ("tcp", 22, "192.0.2.0/24"),
        ("tcp", 80, "0.0.0.0/0"),
        ("icmp", None, "0.0.0.0/0"),
    }
    attached = project.connection.compute.volume_attachments(server)
    assert {item.volume_id for item in attached} == {stack.physical_id("Uploads"), stack.physical_id("Data")}
    data = project.connection.block_storage.get_volume(stack.physical_id("Data"))
    assert (data.size, data.metadata["content"], data.status) == (2, "database", "in-use")
    [port] = project.connection.network.ports(device_id=server)
    assert (port.security_group_ids, port.fixed_ips[0]["ip_address"]) == ([group], stack.outputs()["Address"])

    stack.update(**{**body, "parameters": {**GIVEN, "WebPort": "8080"}})
    assert stack.physical_id("Web") == group
    assert ("tcp", 8080, "0.0.0.0/0") in rules(project, group)
    assert len(rules(project, group)) == 3
    stack.delete()
    assert project.leftovers() == {}
