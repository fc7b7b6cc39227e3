"""The declared type of doc/plugins.md works on a real Neutron, as the page says."""

import pathlib
from collections.abc import Iterator

import pytest
from harness import plugin_page
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on

OFFICES = {"192.0.2.0/24", "198.51.100.0/24"}


@pytest.fixture
def stacks_with_plugin(cloud: Cloud, project: Project, tmp_path: pathlib.Path) -> Iterator[Stacks]:
    """The stacks of the project, at a Stoker that has the page's package."""
    env = {"PYTHONPATH": str(plugin_page.install(tmp_path))}
    with stoker_on(cloud, tmp_path, conductors=1, env=env) as service:
        stacks = Stacks(service, project)
        yield stacks
        stacks.clean()


def test_the_declared_type_of_the_guide_works(stacks_with_plugin: Stacks, project: Project) -> None:
    network = project.connection.network
    template = plugin_page.template("Acme::AddressGroup")
    stack = stacks_with_plugin.create("declared", template)
    [group] = network.address_groups(project_id=project.id)
    outputs = stack.outputs()
    assert (outputs["id"], set(outputs["networks"])) == (group.id, OFFICES)
    assert (group.name, set(group.addresses)) == ("offices", OFFICES)
    assert group.description.startswith("stoker-")

    changed_template = template.replace("name: offices", "name: branches").replace("192.0.2", "203.0.113")
    stack.update(changed_template)
    changed = network.get_address_group(group.id)
    assert (changed.name, set(changed.addresses)) == ("branches", {"198.51.100.0/24", "203.0.113.0/24"})
    assert set(stack.outputs()["networks"]) == set(changed.addresses)
    assert stack.physical_id("offices") == group.id

    invalid = template.replace("192.0.2.0/24", "nowhere")
    answer = stacks_with_plugin.call("PUT", stack.path, {"template": invalid})
    assert answer.status == 400
    assert "nowhere" in answer.error["message"]

    stack.action("check")
    stack.delete()
    assert list(network.address_groups(project_id=project.id)) == []
