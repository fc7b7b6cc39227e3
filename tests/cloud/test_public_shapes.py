"""Templates in the shapes of those that people publish: created, updated, deleted, and nothing is left.

`cloud/run_templates.py` runs the public ones themselves.
"""

import base64
import pathlib
import shlex
import typing
from collections.abc import Mapping

import requests
from harness.cloud.project import Project
from harness.cloud.site import Site
from harness.cloud.stacks import Stack, Stacks
from harness.step_driver import Driven
from harness.waiting import wait_for

Json = typing.Any
TEMPLATES = pathlib.Path(__file__).parent / "templates"
GIVEN = {"image": "cirros", "flavor": "m1.tiny"}
WITHIN = 180.0


class Sample:
    """The stack of one file of ``templates/``, with the nested ones that it names."""

    def __init__(self, stacks: Stacks, name: str, **parameters: Json) -> None:
        self._stacks = stacks
        self._name = name
        text = (TEMPLATES / f"{name}.yaml").read_text()
        nested = {path.name: path.read_text() for path in TEMPLATES.glob("*.yaml") if path.name in text}
        values = {**(GIVEN if "flavor:" in text else {}), **parameters}
        self._body = {"template": text, "files": nested, "parameters": values}

    def start(self) -> Stack:
        """Begin to create it."""
        return self._stacks.start(self._name.replace("_", "-"), **self._body)

    def create(self) -> Stack:
        """Create it, and see that an update to the same template leaves everything."""
        stack = self.start()
        stack.wait("CREATE_COMPLETE")
        self.update(stack)
        return stack

    def update(self, stack: Stack, **parameters: Json) -> None:
        """Update it; what is made by other resources than the parameters' stays."""
        before = _ids(stack)
        values = {**self._body["parameters"], **parameters}
        stack.update(self._body["template"], files=self._body["files"], parameters=values)
        after = _ids(stack)
        assert {path: after.get(path) for path in before} == before


def _ids(stack: Stack) -> Mapping[str, Json]:
    resources = stack.get("/resources?nested_depth=5")["resources"]
    return {item["links"][0]["href"]: item["physical_resource_id"] for item in resources}


def test_servers_on_a_new_network_with_floating_ips(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "floating_servers", public_net="public")
    stack = sample.create()
    network = project.connection.network
    outputs = stack.outputs()
    by_address = {ip.floating_ip_address: ip.fixed_ip_address for ip in network.ips(project_id=project.id)}
    assert by_address == {
        outputs["public_a"]: outputs["private_a"],
        outputs["public_b"]: outputs["private_b"],
    }
    sample.update(stack, flavor="m1.small")
    server = project.connection.compute.get_server(stack.physical_id("server_a"))
    assert (server.status, server.flavor.name) == ("ACTIVE", "m1.small")
    stack.delete()
    assert project.leftovers() == {}


def test_a_group_of_servers_grows(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "group_of_servers")
    stack = sample.create()
    assert stack.outputs()["names"] == ["node-0", "node-1"]
    sample.update(stack, count=3)
    servers = {server.name: server for server in project.connection.compute.servers()}
    assert sorted(servers) == ["node-0", "node-1", "node-2"]
    assert servers["node-2"].metadata == {"index": "2", "stack": "group-of-servers"}
    assert stack.outputs()["second"] == "node-1"
    assert {address["addr"] for server in servers.values() for [address] in server.addresses.values()} == {
        *stack.outputs()["addresses"]
    }
    stack.delete()
    assert project.leftovers() == {}


def test_volumes_attached_by_a_nested_template(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "server_with_volumes", volumes=1)
    stack = sample.create()
    sample.update(stack, volumes=2)
    server = stack.physical_id("server")
    attached = {item.volume_id for item in project.connection.compute.volume_attachments(server)}
    assert attached == {*stack.outputs()["volumes"]}
    assert len(attached) == 2
    stack.delete()
    assert project.leftovers() == {}


def test_servers_that_boot_from_volumes(stacks: Stacks, project: Project) -> None:
    stack = Sample(stacks, "boot_from_volume").create()
    storage = project.connection.block_storage
    used = {volume.id: volume.attachments[0]["server_id"] for volume in storage.volumes()}
    assert used.pop(stack.outputs()["boot_volume"]) == stack.physical_id("kept")
    assert [*used.values()] == [stack.physical_id("gone")]
    stack.delete()
    assert project.leftovers() == {}


def test_security_groups_that_let_each_other_in_and_a_shared_address(
    stacks: Stacks, project: Project
) -> None:
    sample = Sample(stacks, "security_groups")
    stack = sample.create()
    sample.update(stack, open=True)
    network = project.connection.network
    front = stack.physical_id("front")
    back = stack.physical_id("back")
    rules = network.get_security_group(back).security_group_rules
    ingress = [rule for rule in rules if rule["direction"] == "ingress"]
    assert {(rule["protocol"], rule["remote_group_id"]) for rule in ingress} == {
        ("tcp", front),
        (None, back),
        ("udp", None),
    }
    ports = [network.get_port(stack.physical_id(name)) for name in ("port_1", "port_2")]
    assert [port.allowed_address_pairs[0]["ip_address"] for port in ports] == ["10.35.0.50"] * 2
    assert stack.outputs() == {"shared": "10.35.0.50", "addresses": "10.35.0.51,10.35.0.52"}
    stack.delete()
    assert project.leftovers() == {}


def test_a_server_with_a_key_pair_of_the_stack(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "key_pair")
    stack = sample.create()
    assert "PRIVATE KEY" in stack.outputs()["private_key"]
    sample.update(stack, greeting="good morning")
    server = project.connection.compute.get_server(stack.physical_id("server"))
    assert server.key_name == "stack-key"
    assert server.metadata == {"greeting": "good morning"}
    stack.delete()
    assert project.leftovers() == {}


def test_a_server_whose_user_data_ends_the_wait(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "wait_condition")
    stack = sample.start()
    wait_for(lambda: stack.resources()["server"]["resource_status"] == "CREATE_COMPLETE", WITHIN)
    for line in _user_data(project, stack).splitlines()[1:]:
        _curl(line)
    stack.wait("CREATE_COMPLETE")
    assert stack.outputs()["told"] == '{"1": "once more", "2": "second"}'
    sample.update(stack)
    stack.delete()
    assert project.leftovers() == {}


def test_a_scaling_group_of_nested_templates(stacks: Stacks, project: Project) -> None:
    sample = Sample(stacks, "scaling_group")
    stack = sample.create()
    sample.update(stack, size=2)
    outputs = stack.outputs()
    ports = project.connection.network.ports(project_id=project.id, device_owner="compute:nova")
    assert outputs["size"] == 2
    assert {port.fixed_ips[0]["ip_address"] for port in ports} == {*outputs["addresses"]}
    stack.delete()
    assert project.leftovers() == {}


def test_a_server_that_is_there_already(stacks: Stacks, project: Project) -> None:
    server = Driven.create(Site(project).server())
    before = project.leftovers()
    sample = Sample(stacks, "external_server", server_id=server.id)
    stack = sample.create()
    attached = project.connection.compute.volume_attachments(server.id)
    assert {item.volume_id for item in attached} == {stack.physical_id("volume")}
    assert stack.outputs()["address"].startswith("10.7.0.")
    stack.delete()
    assert project.leftovers() == before


def _user_data(project: Project, stack: Stack) -> str:
    """The user data that Nova has for the server."""
    server = project.admin.compute.get_server(stack.physical_id("server"))
    return base64.b64decode(server.user_data).decode()


def _curl(line: str) -> None:
    """Send what the command line would."""
    words = shlex.split(line)
    assert words[0] == "curl"
    options: dict[str, list[str]] = {}
    for name, value in zip(words, words[1:], strict=False):
        options.setdefault(name, []).append(value)
    headers = dict(value.split(": ", 1) for value in options["-H"])
    [url] = [word for word in words if word.startswith("http")]
    answer = requests.request(
        options["-X"][0], url, headers=headers, data=options["--data-binary"][0], timeout=60
    )
    assert answer.ok, (answer.status_code, answer.text)
