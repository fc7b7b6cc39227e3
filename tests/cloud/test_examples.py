"""The template that the demonstration shows, as the services see what comes of it."""

import pathlib

import pytest
import yaml
from harness.cloud.stacks import Stacks

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.commit
def test_the_server_of_the_demonstration_is_reached_from_outside_and_has_its_volume(stacks: Stacks) -> None:
    template = yaml.load((EXAMPLES / "server.yaml").read_text(), yaml.BaseLoader)
    stack = stacks.create("app", template)
    c = stacks.project.connection
    server = c.compute.get_server(stack.physical_id("server"))
    assert server.status == "ACTIVE"
    [address] = c.network.ips(project_id=stacks.project.id)
    assert c.network.get_port(address.port_id).device_id == server.id
    assert stack.outputs() == {
        "private_address": address.fixed_ip_address,
        "public_address": address.floating_ip_address,
    }
    [volume] = c.block_storage.volumes()
    assert (volume.status, volume.attachments[0]["server_id"]) == ("in-use", server.id)
    stack.delete()
    assert stacks.project.leftovers() == {}
