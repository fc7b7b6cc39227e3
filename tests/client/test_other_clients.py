"""openstacksdk and Ansible, each with a stack's whole life."""

import pathlib

import openstack as openstacksdk
import pytest
from client.ansible import Ansible
from client.commands import OpenStack
from client.serving import Service
from openstack.connection import Connection

pytestmark = pytest.mark.filterwarnings("ignore:::openstack.*")
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  word: {type: string, default: none}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
outputs:
  word: {value: {get_attr: [r, output]}}
"""


@pytest.fixture
def sdk(openstack: OpenStack) -> Connection:
    """A connection of openstacksdk's to the project of `openstack`."""
    return openstacksdk.connect(
        auth_type="none", auth={"endpoint": openstack.variables["OS_ENDPOINT"]}, load_yaml_config=False
    )


@pytest.fixture
def ansible(service: Service, openstack: OpenStack, tmp_path: pathlib.Path) -> Ansible:
    """Ansible for the project of `openstack`."""
    return Ansible(service, openstack.tenant, tmp_path)


def word(openstack: OpenStack) -> str:
    return str(openstack.json("stack", "output", "show", "s", "word")["output_value"])


def test_openstacksdk_creates_updates_and_deletes_a_stack(openstack: OpenStack, sdk: Connection) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    created = sdk.create_stack("s", template_file=path, wait=True, word="one")
    assert (created.status, created.outputs[0]["output_value"]) == ("CREATE_COMPLETE", "one")
    for value in ("one", "two"):
        changed = sdk.update_stack("s", template_file=path, wait=True, word=value)
        assert (changed.id, changed.status) == (created.id, "UPDATE_COMPLETE")
        assert word(openstack) == value
    assert sdk.delete_stack("s", wait=True)
    assert sdk.get_stack("s") is None


def test_openstacksdks_proxy_updates_a_stack(openstack: OpenStack, sdk: Connection) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    created = sdk.create_stack("s", template_file=path, wait=True, word="one")
    fields = sdk.orchestration.read_env_and_templates(template_file=path)
    changed = sdk.orchestration.update_stack(created.id, parameters={"word": "two"}, **fields)
    assert changed.id == created.id
    sdk.orchestration.wait_for_status(changed, "UPDATE_COMPLETE", interval=1, wait=300)
    assert word(openstack) == "two"


@pytest.mark.full
def test_ansible_runs_a_playbook_twice(openstack: OpenStack, ansible: Ansible) -> None:
    path = openstack.file("t.yaml", TEMPLATE)
    created = ansible.stack(name="s", template=path, parameters={"word": "one"})["stack"]
    assert word(openstack) == "one"
    for value in ("one", "two"):
        changed = ansible.stack(name="s", template=path, parameters={"word": value})["stack"]
        assert (changed["id"], changed["status"]) == (created["id"], "UPDATE_COMPLETE")
        assert word(openstack) == value
    assert ansible.stack(name="s", state="absent")["changed"]
    assert not ansible.stack(name="s", state="absent")["changed"]
