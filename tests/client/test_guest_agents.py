"""Real agents of servers apply deployments, and signal: create, update, delete, failure."""

import pathlib
import typing

import pytest
from client.serving import Json, Service
from harness.guests.agents import Agents
from harness.waiting import wait_for

pytestmark = [pytest.mark.full, pytest.mark.needs("guests")]
SCRIPT = '#!/bin/sh\necho "$deploy_action $word" | tee $heat_outputs_path.said\nexit ${code:-0}\n'
SIGNALS = {
    "POLL_SERVER_CFN": "CFN_SIGNAL",
    "POLL_TEMP_URL": "TEMP_URL_SIGNAL",
    "POLL_SERVER_HEAT": "HEAT_SIGNAL",
}
"""By the transport of the metadata: the one of the signals."""
ACTIONS = ["CREATE", "UPDATE", "DELETE"]


def template(transport: str = "POLL_SERVER_CFN", script: str = SCRIPT, **inputs: Json) -> Json:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            "server": {
                "type": "OS::Heat::DeployedServer",
                "properties": {"software_config_transport": transport},
            },
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {
                    "group": "script",
                    "config": script,
                    "inputs": [{"name": "word"}, {"name": "code", "default": "0"}],
                    "outputs": [{"name": "said"}],
                },
            },
            "deployment": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {
                    "server": {"get_resource": "server"},
                    "config": {"get_resource": "config"},
                    "input_values": inputs,
                    "actions": ACTIONS,
                    "signal_transport": SIGNALS[transport],
                },
            },
        },
        "outputs": {
            name: {"value": {"get_attr": ["deployment", name]}}
            for name in ("said", "deploy_stdout", "deploy_stderr", "deploy_status_code")
        },
    }


class Deployed:
    """A stack with a server, and the agents in that server."""

    def __init__(self, service: Service, directory: pathlib.Path, body: Json) -> None:
        self.service = service
        self.directory = directory
        self.path = service.create("guests", directory.name[:40], body)
        wait_for(lambda: self.status("server") == "CREATE_COMPLETE", 60, lambda: self.status("server"))
        view = service.get(f"{self.path}/resources/server?with_attr=os_collect_config")
        self.agents = Agents(directory / "server", view["resource"]["attributes"]["os_collect_config"])

    def status(self, name: str) -> str:
        return str(self.service.get(f"{self.path}/resources/{name}")["resource"]["resource_status"])

    def waits(self, action: str) -> None:
        """Wait until the deployment waits for the guest."""

        def handed_out() -> bool:
            deployments = self.service.get("/v1/guests/software_deployments")["software_deployments"]
            resource = self.service.get(f"{self.path}/resources/deployment")["resource"]
            deployment_id = resource["physical_resource_id"]
            return any(
                (item["id"], item["action"], item["status"]) == (deployment_id, action, "IN_PROGRESS")
                for item in deployments
            )

        wait_for(handed_out, 60, lambda: self.service.get(f"{self.path}/resources"))

    def outputs(self) -> Json:
        stack = self.service.get(self.path)["stack"]
        return {output["output_key"]: output["output_value"] for output in stack["outputs"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> typing.Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("guests"), conductors=1)
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("transport", SIGNALS)
def test_agents_apply_a_script_at_create_update_and_delete(
    service: Service, tmp_path: pathlib.Path, transport: str
) -> None:
    deployed = Deployed(service, tmp_path, template(transport, word="one"))
    deployed.waits("CREATE")
    output = deployed.agents.run()
    assert deployed.service.settled(deployed.path)["stack_status"] == "CREATE_COMPLETE", output
    assert deployed.outputs() == {
        "said": "CREATE one\n",
        "deploy_stdout": "CREATE one\n",
        "deploy_stderr": "",
        "deploy_status_code": 0,
    }

    for body, expected in (
        (template(transport, word="two"), "UPDATE two"),
        (template(transport, SCRIPT.replace("$word", "new $word"), word="two"), "UPDATE new two"),
    ):
        assert service.call("PUT", deployed.path, {"template": body}).status == 202
        deployed.waits("UPDATE")
        output = deployed.agents.run()
        assert service.settled(deployed.path)["stack_status"] == "UPDATE_COMPLETE", output
        assert deployed.outputs()["said"] == f"{expected}\n"

    assert service.call("DELETE", deployed.path).status == 204
    deployed.waits("DELETE")
    output = deployed.agents.run()
    assert service.settled(deployed.path)["stack_status"] == "DELETE_COMPLETE", output
    assert "DELETE" in str(deployed.agents.applied)


def test_a_script_that_fails_fails_the_deployment_with_its_output(
    service: Service, tmp_path: pathlib.Path
) -> None:
    deployed = Deployed(service, tmp_path, template(word="bad", code="3"))
    deployed.waits("CREATE")
    output = deployed.agents.run()
    stack = service.settled(deployed.path)
    assert stack["stack_status"] == "CREATE_FAILED", output
    assert "Deployment exited with non-zero status code: 3" in stack["stack_status_reason"]
    path = "/v1/guests/software_deployments"
    listed = service.get(path)["software_deployments"]
    assert "CREATE bad" in str([service.get(f"{path}/{item['id']}") for item in listed])
