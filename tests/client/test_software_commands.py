"""``openstack software config …`` and ``openstack software deployment …``, and openstacksdk's methods."""

import json
import typing

import openstack as openstacksdk
import pytest
from client.commands import OpenStack
from openstack.connection import Connection
from openstack.exceptions import NotFoundException

Json = typing.Any
DEFINITION = """
inputs: [{name: word, default: hello}]
outputs: [{name: said}]
options: {verbose: true}
"""


def config(openstack: OpenStack, name: str = "c") -> Json:
    files = ("--definition-file", openstack.file("definition.yaml", DEFINITION))
    script = ("--config-file", openstack.file("script.sh", "echo $word\n"))
    return openstack.json("software", "config", "create", name, "--group", "script", *files, *script)


def deployment(openstack: OpenStack, config_id: str, name: str = "d", server: str = "server1") -> Json:
    options = ("--config", config_id, "--server", server, "--input-value", "word=bye")
    command = ("software", "deployment", "create", name, *options, "--action", "CREATE")
    return openstack.json(*command, "--signal-transport", "NO_SIGNAL")


def test_a_config_is_created_listed_shown_and_deleted(openstack: OpenStack) -> None:
    created = config(openstack)
    assert (created["name"], created["group"], created["config"]) == ("c", "script", "echo $word\n")
    view = openstack.json("software", "config", "show", created["id"])
    assert view["inputs"] == [{"name": "word", "type": "String", "default": "hello"}]
    assert view["options"] == {"verbose": True}
    assert openstack.run("software", "config", "show", created["id"], "--config-only").out == "echo $word\n\n"
    [listed] = openstack.json("software", "config", "list")
    assert (listed["id"], listed["name"], listed["group"]) == (created["id"], "c", "script")
    openstack.run("software", "config", "delete", created["id"])
    assert openstack.json("software", "config", "list") == []
    assert "not found" in openstack.fails("software", "config", "show", created["id"]).lower()


def test_a_deployment_is_created_listed_shown_and_deleted(openstack: OpenStack) -> None:
    created = deployment(openstack, config(openstack)["id"])
    assert (created["server_id"], created["action"], created["status"]) == (
        "server1",
        "CREATE",
        "IN_PROGRESS",
    )
    deployment(openstack, config(openstack)["id"], server="server2")
    [listed] = openstack.json("software", "deployment", "list", "--server", "server1", "--long")
    assert (listed["id"], listed["status"]) == (created["id"], "IN_PROGRESS")
    assert len(openstack.json("software", "deployment", "list")) == 2
    view = openstack.json("software", "deployment", "show", created["id"], "--long")
    assert (view["config_id"], view["output_values"]) == (created["config_id"], None)
    openstack.run("software", "deployment", "delete", created["id"])
    assert "not found" in openstack.fails("software", "deployment", "show", created["id"])
    # The client deletes the config that it has derived, too.
    assert created["config_id"] not in [c["id"] for c in openstack.json("software", "config", "list")]


@pytest.mark.full
def test_a_servers_metadata_and_a_deployments_outputs_are_shown(openstack: OpenStack) -> None:
    created = deployment(openstack, config(openstack)["id"])
    printed = openstack.run("software", "deployment", "metadata", "show", "server1").out
    [deployed] = json.loads(printed)
    inputs = {item["name"]: item["value"] for item in deployed["inputs"]}
    assert inputs == {
        "word": "bye",
        "deploy_server_id": "server1",
        "deploy_action": "CREATE",
        "deploy_signal_transport": "NO_SIGNAL",
    }
    url = f"/v1/{openstack.tenant}/software_deployments/{created['id']}"
    outputs = {"deploy_stdout": "line one\nline two", "said": "bye"}
    openstack.service.call("PUT", url, {"status": "COMPLETE", "output_values": outputs})
    # The client prints these to the standard output that its process began with.
    text = openstack.process("software", "deployment", "output", "show", created["id"], "--all").out
    assert "said" in text
    assert "line two" in text
    assert "bye" in openstack.process("software", "deployment", "output", "show", created["id"], "said").out
    missing = openstack.fails("software", "deployment", "output", "show", created["id"], "other")
    assert "Output other does not exist" in missing


@pytest.fixture
def sdk(openstack: OpenStack) -> Connection:
    return openstacksdk.connect(
        auth_type="none", auth={"endpoint": openstack.variables["OS_ENDPOINT"]}, load_yaml_config=False
    )


@pytest.mark.filterwarnings("ignore:::openstack.*")
def test_openstacksdk_creates_lists_updates_and_deletes_both(sdk: Connection) -> None:
    proxy = sdk.orchestration
    configs = [
        proxy.create_software_config(name=name, group="script", config="x", inputs=[{"name": "i"}])
        for name in ("a", "b")
    ]
    assert proxy.get_software_config(configs[0].id).inputs == [{"name": "i", "type": "String"}]
    assert {c.name for c in proxy.software_configs()} == {"a", "b"}
    assert len(list(proxy.software_configs(limit=1))) == 2  # It asks for page after page.
    created = proxy.create_software_deployment(
        config_id=configs[0].id, server_id="s", action="CREATE", status="IN_PROGRESS", input_values={"i": 1}
    )
    changed = proxy.update_software_deployment(created.id, config_id=configs[1].id, status="COMPLETE")
    assert (changed.config_id, changed.status, changed.input_values) == (configs[1].id, "COMPLETE", {"i": 1})
    assert proxy.get_software_deployment(created.id).updated_at is not None
    assert [d.id for d in proxy.software_deployments()] == [created.id]
    proxy.delete_software_deployment(created.id, ignore_missing=False)
    for config_item in configs:
        proxy.delete_software_config(config_item.id, ignore_missing=False)
    with pytest.raises(NotFoundException):
        proxy.get_software_config(configs[0].id)
    with pytest.raises(NotFoundException):
        proxy.get_software_deployment(created.id)
