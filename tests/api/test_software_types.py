"""Software configs and deployments as resources: what guests read, signals, outputs, actions, secrets."""

import contextlib
import email
import json
import sqlite3
import typing

import pytest
from client.serving import Json, Service
from harness.waiting import wait_for
from stoker.sealing.sealer import Sealer
from stoker.sealing.software import opened

CONTRACT = {
    "deploy_server_id": "ID of the server being deployed to",
    "deploy_action": "Name of the current action being deployed",
    "deploy_stack_id": "ID of the stack this deployment belongs to",
    "deploy_resource_name": "Name of this deployment resource in the stack",
    "deploy_signal_transport": "How the server should signal to heat with the deployment output values.",
    "deploy_signal_id": "ID of signal to use for signaling output values",
    "deploy_signal_verb": "HTTP verb to use for signaling output values",
}
"""Heat's inputs of derived configs that need no account, with their descriptions."""


class Guest:
    """Plays the agent of a server: reads what is deployed to it, as the database holds it."""

    def __init__(self, service: Service, project_id: str, server_id: str = "server") -> None:
        self.service = service
        self._project_id = project_id
        self._server_id = server_id

    def deployed(self) -> list[Json]:
        """The configs in clear, in the order of their names."""
        query = (
            "SELECT c.name, c.tool, c.body FROM software_config c JOIN software_deployment d"
            " ON d.config_id = c.id WHERE d.server_id = ? AND d.project_id = ? ORDER BY c.name"
        )
        sealer = Sealer([self.service.key]).of_software(self._project_id)
        path = f"file:{self.service.data / 'stoker.sqlite'}?mode=ro"
        with contextlib.closing(sqlite3.connect(path, uri=True)) as conn:
            rows = conn.execute(query, (self._server_id, self._project_id)).fetchall()
        return [{"name": n, "group": g, **opened(sealer, json.loads(body)).value} for n, g, body in rows]

    def values(self) -> list[dict[str, Json]]:
        """The inputs' values of each config."""
        return [{item["name"]: item.get("value") for item in c["inputs"]} for c in self.deployed()]

    def inputs(self, action: str) -> dict[str, Json]:
        """The inputs' values of the one config, once it is deployed for an action."""
        wait_for(lambda: [deployment.get("deploy_action") for deployment in self.values()] == [action])
        return self.values()[0]

    def signal(self, inputs: Json, **outputs: Json) -> None:
        """Send outputs as heat-config-notify does."""
        answer = self.service.call(inputs["deploy_signal_verb"], inputs["deploy_signal_id"], outputs)
        assert answer.status == 200, answer


@pytest.fixture
def guest(service: Service, tenant: str) -> Guest:
    return Guest(service, tenant)


def template(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources, **more}


def deploying(**properties: Json) -> Json:
    """A config and its deployment to a server that is not Stoker's."""
    config = {
        "group": "script",
        "config": "#!/bin/sh\necho $word\n",
        "inputs": [{"name": "word", "default": "hello"}, {"name": "size", "type": "Number", "default": 3}],
        "outputs": [{"name": "said"}, {"name": "broken", "error_output": True}],
        "options": {"verbose": True},
    }
    fields = {"config": {"get_resource": "config"}, "server": "server", **properties}
    return template(
        {
            "config": {"type": "OS::Heat::SoftwareConfig", "properties": config},
            "deployment": {"type": "OS::Heat::SoftwareDeployment", "properties": fields},
        },
        outputs={
            name: {"value": {"get_attr": ["deployment", name]}}
            for name in ("said", "deploy_stdout", "deploy_stderr", "deploy_status_code")
        },
    )


def outputs(stack: Json) -> dict[str, Json]:
    return {item["output_key"]: item["output_value"] for item in stack["outputs"]}


def deployments(service: Service, tenant: str) -> list[Json]:
    path = f"/v1/{tenant}/software_deployments"
    ids = [item["id"] for item in service.get(path)["software_deployments"]]
    answers = [service.call("GET", f"{path}/{key}") for key in ids]
    assert {answer.status for answer in answers} <= {200, 404}, answers
    # A deployment may be deleted between the list and its own request.
    return [answer.body["software_deployment"] for answer in answers if answer.status == 200]


def configs(service: Service, tenant: str) -> list[Json]:
    listed: list[Json] = service.get(f"/v1/{tenant}/software_configs")["software_configs"]
    return listed


def test_a_deployment_gives_the_guest_heats_inputs_and_shows_its_outputs(
    service: Service, tenant: str, guest: Guest
) -> None:
    path = service.create(tenant, "s", deploying(input_values={"word": "bye", "more": "undeclared"}))
    inputs = guest.inputs("CREATE")
    [config] = guest.deployed()
    assert (config["group"], config["config"]) == ("script", "#!/bin/sh\necho $word\n")
    assert (config["options"], config["name"].split("-")[:2]) == ({"verbose": True}, ["s", "config"])
    by_name = {item["name"]: item for item in config["inputs"]}
    assert list(by_name) == ["word", "size", "more", *CONTRACT]
    assert {name: by_name[name]["description"] for name in CONTRACT} == CONTRACT
    assert {name: by_name[name]["type"] for name in CONTRACT} == dict.fromkeys(CONTRACT, "String")
    stack_id = path.rsplit("/", 1)[1]
    assert {name: value for name, value in inputs.items() if name != "deploy_signal_id"} == {
        **{"word": "bye", "size": 3, "more": "undeclared"},
        "deploy_server_id": "server",
        "deploy_action": "CREATE",
        "deploy_stack_id": f"s/{stack_id}",
        "deploy_resource_name": "deployment",
        "deploy_signal_transport": "CFN_SIGNAL",
        "deploy_signal_verb": "POST",
    }
    [deployment] = deployments(service, tenant)
    assert (deployment["status"], deployment["status_reason"]) == ("IN_PROGRESS", "Deploy data available")
    assert service.get(f"{path}/resources/deployment")["resource"]["resource_status"] == "CREATE_IN_PROGRESS"

    guest.signal(inputs, deploy_stdout="bye\n", deploy_stderr="", deploy_status_code=0, said="bye", other="x")
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert outputs(stack) == {
        **{"said": "bye", "deploy_stdout": "bye\n", "deploy_stderr": "", "deploy_status_code": 0},
    }
    [deployment] = deployments(service, tenant)
    assert (deployment["status"], deployment["status_reason"]) == ("COMPLETE", "Outputs received")
    assert deployment["output_values"]["said"] == "bye"
    # What comes later is not expected any more, and changes nothing.
    guest.signal(inputs, deploy_status_code=1, said="late")
    assert outputs(service.get(path)["stack"])["said"] == "bye"
    events = service.get(f"{path}/resources/deployment/events")["events"]
    assert f"deployment {deployment['id']} succeeded" in [e["resource_status_reason"] for e in events]


def test_nobody_sees_the_address_of_signals_but_the_guest(
    service: Service, tenant: str, guest: Guest
) -> None:
    path = service.create(
        tenant,
        "s",
        deploying(input_values={"word": {"get_param": "password"}})
        | {
            "parameters": {"password": {"type": "string", "hidden": True}},
        },
        parameters={"password": "s3cret-word"},
    )
    inputs = guest.inputs("CREATE")
    assert inputs["word"] == "s3cret-word"
    signature = inputs["deploy_signal_id"].partition("Signature=")[2]
    guest.signal(inputs, deploy_stdout="it was s3cret-word", deploy_status_code=0, said="s3cret-word")
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    [config] = service.get(f"/v1/{tenant}/software_deployments/metadata/server")["metadata"]
    text = json.dumps(
        [
            config,
            service.get(f"/v1/{tenant}/software_configs/{config['id']}"),
            deployments(service, tenant),
            service.get(f"{path}/resources"),
            service.get(f"{path}/events"),
        ]
    )
    assert "******" in text
    assert "s3cret-word" not in text
    assert signature not in text
    stored = (service.data / "stoker.sqlite").read_bytes() + service.process.text().encode()
    assert b"s3cret-word" not in stored
    assert signature.encode() not in stored
    # An output shows what the template asks for.
    assert outputs(service.get(path)["stack"])["said"] == "s3cret-word"


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (
            {"deploy_status_code": 3, "deploy_stderr": "no"},
            "deploy_status_code : Deployment exited with non-zero status code: 3",
        ),
        ({"deploy_status_code": 0, "broken": "all of it"}, "broken : all of it"),
    ],
)
def test_a_failure_has_the_guests_reason_and_the_next_update_deploys_again(
    service: Service, tenant: str, guest: Guest, sent: Json, reason: str
) -> None:
    path = service.create(tenant, "s", deploying())
    guest.signal(guest.inputs("CREATE"), **sent)
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    failed = f"Error: resources.deployment: Deployment to server failed: {reason}"
    assert stack["stack_status_reason"] == f"Resource CREATE failed: {failed}"
    [deployment] = deployments(service, tenant)
    assert (deployment["status"], deployment["status_reason"]) == ("FAILED", reason)
    assert service.call("PUT", path, {"template": deploying()}).status == 202
    wait_for(lambda: [d["status"] for d in deployments(service, tenant)] == ["FAILED", "IN_PROGRESS"])
    for inputs in guest.values():
        service.call(inputs["deploy_signal_verb"], inputs["deploy_signal_id"], {"deploy_status_code": 0})
    assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    assert [d["status"] for d in deployments(service, tenant)] == ["COMPLETE"]


def test_every_action_that_is_requested_is_deployed_and_all_of_it_is_deleted(
    service: Service, tenant: str, guest: Guest
) -> None:
    every = ["CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE"]
    properties = {"actions": every, "signal_transport": "TEMP_URL_SIGNAL"}
    path = service.create(tenant, "s", deploying(**properties))

    def act(name: str) -> None:
        inputs = guest.inputs(name)
        assert (inputs["deploy_signal_verb"], inputs["deploy_signal_transport"]) == ("PUT", "TEMP_URL_SIGNAL")
        guest.signal(inputs, deploy_stdout=name, deploy_status_code=0)

    act("CREATE")
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    assert (
        service.call("PUT", path, {"template": deploying(**properties, input_values={"word": "x"})}).status
        == 202
    )
    act("UPDATE")
    assert outputs(service.settled(path))["deploy_stdout"] == "UPDATE"
    for name in ("SUSPEND", "RESUME"):
        assert service.call("POST", f"{path}/actions", {name.lower(): None}).status == 200
        act(name)
        assert service.settled(path)["stack_status"] == f"{name}_COMPLETE"
    # Each action has replaced the config of the one before.
    assert len(configs(service, tenant)) == 2
    assert service.call("DELETE", path).status == 204
    act("DELETE")
    wait_for(lambda: service.get(path)["stack"]["stack_status"] == "DELETE_COMPLETE")
    assert (deployments(service, tenant), configs(service, tenant)) == ([], [])


def test_without_a_signal_or_an_action_nothing_waits(service: Service, tenant: str, guest: Guest) -> None:
    path = service.created(tenant, "quiet", deploying(signal_transport="NO_SIGNAL"))
    [deployment] = deployments(service, tenant)
    assert (deployment["status"], deployment["status_reason"]) == (
        "COMPLETE",
        "Not waiting for outputs signal",
    )
    [config] = guest.deployed()
    assert not {"deploy_signal_id", "deploy_signal_verb"} & {item["name"] for item in config["inputs"]}
    service.created(tenant, "later", deploying(actions=["UPDATE"], server="other"))
    assert len(deployments(service, tenant)) == 1
    for name in ("quiet", "later"):
        [stack] = [s for s in service.get(f"/v1/{tenant}/stacks")["stacks"] if s["stack_name"] == name]
        service.call("DELETE", f"/v1/{tenant}/stacks/{name}/{stack['id']}")
    wait_for(lambda: (deployments(service, tenant), configs(service, tenant)) == ([], []))
    assert path


def test_an_input_may_replace_the_deployment(service: Service, tenant: str, guest: Guest) -> None:
    first = deploying(signal_transport="NO_SIGNAL", input_values={"word": "one"})
    first["resources"]["config"]["properties"]["inputs"][0]["replace_on_change"] = True
    path = service.created(tenant, "s", first)
    [before] = deployments(service, tenant)
    for word, is_same in (("one", True), ("two", False)):
        values = {"word": word, "size": 4}
        first["resources"]["deployment"]["properties"]["input_values"] = values
        assert service.call("PUT", path, {"template": first}).status == 202
        assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
        [after] = deployments(service, tenant)
        assert (after["id"] == before["id"], after["action"]) == (is_same, "UPDATE" if is_same else "CREATE")


def test_an_update_over_the_api_ends_the_wait(service: Service, tenant: str, guest: Guest) -> None:
    path = service.create(tenant, "s", deploying())
    guest.inputs("CREATE")
    [deployment] = deployments(service, tenant)
    body = {"status": "COMPLETE", "output_values": {"said": "by hand"}}
    service.call("PUT", f"/v1/{tenant}/software_deployments/{deployment['id']}", body)
    assert outputs(service.settled(path))["said"] == "by hand"


def test_structured_deployments_put_the_inputs_in(service: Service, tenant: str, guest: Guest) -> None:
    config = {"a": {"get_input": "x"}, "list": [{"get_input": "y"}, {"get_input": "z", "and": 1}], "n": None}
    resources = {
        "config": {"type": "OS::Heat::StructuredConfig", "properties": {"config": config}},
        "deployment": {
            "type": "OS::Heat::StructuredDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": "server",
                "input_values": {"x": {"deep": [1]}},
                "signal_transport": "NO_SIGNAL",
            },
        },
    }
    service.created(tenant, "lax", template(resources))
    [deployment] = guest.deployed()
    assert deployment["config"] == {
        "a": {"deep": [1]},
        "list": [None, {"get_input": "z", "and": 1}],
        "n": None,
    }
    strict: Json = {**resources["deployment"]["properties"], "input_values_validate": "STRICT"}  # type: ignore[dict-item]
    resources["deployment"]["properties"] = strict
    stack = service.settled(service.create(tenant, "strict", template(resources)))
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "The Parameter (y) was not provided." in stack["stack_status_reason"]


def test_a_component_is_deployed_for_the_actions_of_its_configs(
    service: Service, tenant: str, guest: Guest
) -> None:
    parts = [
        {"actions": ["CREATE"], "config": "install", "tool": "script"},
        {"actions": ["SUSPEND"], "config": "stop", "tool": "script"},
    ]
    resources = {
        "config": {"type": "OS::Heat::SoftwareComponent", "properties": {"configs": parts}},
        "deployment": {
            "type": "OS::Heat::SoftwareDeployment",
            "properties": {
                "config": {"get_resource": "config"},
                "server": "server",
                "signal_transport": "NO_SIGNAL",
            },
        },
    }
    path = service.created(tenant, "s", template(resources))
    [deployment] = guest.deployed()
    assert (deployment["group"], deployment["config"]) == ("component", {"configs": parts})
    for name, action in (("suspend", "SUSPEND"), ("resume", "SUSPEND")):
        service.call("POST", f"{path}/actions", {name: None})
        assert service.settled(path)["stack_status"] == f"{name.upper()}_COMPLETE"
        assert deployments(service, tenant)[0]["action"] == action
    parts[1]["actions"] = ["SUSPEND", "CREATE"]
    answer = service.call(
        "POST", f"/v1/{tenant}/stacks", {"stack_name": "t", "template": template(resources)}
    )
    assert answer.status == 400
    assert "more than one configuration for the action CREATE" in answer.error["message"]


def test_parts_become_one_message_of_mime(service: Service, tenant: str) -> None:
    resources = {
        "cloud": {"type": "OS::Heat::CloudConfig", "properties": {"cloud_config": {"packages": ["x"]}}},
        "script": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "#!/bin/sh\necho é\n"}},
        "inner": {
            "type": "OS::Heat::MultipartMime",
            "properties": {"parts": [{"config": {"get_resource": "script"}, "filename": "x-shellscript.sh"}]},
        },
        "message": {
            "type": "OS::Heat::MultipartMime",
            "properties": {
                "parts": [
                    {"config": {"get_resource": "cloud"}},
                    {"config": {"get_resource": "inner"}, "type": "multipart"},
                    {"config": "inline", "subtype": "x-other"},
                ]
            },
        },
    }
    config = {"value": {"get_attr": ["message", "config"]}}
    path = service.created(tenant, "s", template(resources, outputs={"config": config}))
    text = outputs(service.get(path)["stack"])["config"]
    parts: typing.Any = email.message_from_string(text).get_payload()
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/x-shellscript", "text/x-other"]
    assert [part.get_payload(decode=True).decode() for part in parts] == [
        "#cloud-config\npackages:\n- x\n",
        "#!/bin/sh\necho é\n",
        "inline",
    ]
    assert parts[1].get_filename() == "x-shellscript.sh"
    groups = {c["name"].split("-")[1]: c["group"] for c in configs(service, tenant)}
    assert set(groups.values()) == {"Heat::Ungrouped"}


def test_a_secret_in_a_message_of_mime_stays_one(service: Service, tenant: str) -> None:
    resources = {
        "script": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {
                "config": {"str_replace": {"template": "é $p", "params": {"$p": {"get_param": "p"}}}}
            },
        },
        "message": {
            "type": "OS::Heat::MultipartMime",
            "properties": {"parts": [{"config": {"get_resource": "script"}}]},
        },
    }
    hidden = {"p": {"type": "string", "hidden": True}}
    path = service.created(
        tenant, "s", template(resources, parameters=hidden), parameters={"p": "s3cret-word"}
    )
    config_id = service.get(f"{path}/resources/message")["resource"]["physical_resource_id"]
    config = service.get(f"/v1/{tenant}/software_configs/{config_id}")["software_config"]
    assert config["config"] == "******"


def test_a_hidden_value_is_no_group_of_a_config(service: Service, tenant: str) -> None:
    group = {"type": "OS::Heat::SoftwareConfig", "properties": {"group": {"get_param": "p"}, "config": "x"}}
    hidden = {"p": {"type": "string", "hidden": True}}
    document = template({"r": group}, parameters=hidden)
    stack = service.settled(service.create(tenant, "s", document, parameters={"p": "s3cret-word"}))
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "the group of a config must not hold a hidden value" in stack["stack_status_reason"]
    assert service.get(f"/v1/{tenant}/software_configs")["software_configs"] == []


def test_a_group_deploys_to_each_server(service: Service, tenant: str) -> None:
    servers = {"one": "server1", "two": "server2"}
    resources = {
        "config": {"type": "OS::Heat::SoftwareConfig", "properties": {"group": "script", "config": "x"}},
        "group": {
            "type": "OS::Heat::SoftwareDeploymentGroup",
            "update_policy": {"rolling_update": {"max_batch_size": 1}},
            "properties": {"config": {"get_resource": "config"}, "servers": servers},
        },
    }
    declared_outputs = {
        "all": {"value": {"get_attr": ["group", "deploy_stdouts"]}},
        "one": {"value": {"get_attr": ["group", "deploy_stdouts", "one"]}},
        "codes": {"value": {"get_attr": ["group", "deploy_status_codes"]}},
        "said": {"value": {"get_attr": ["group", "said"]}},
    }
    path = service.create(tenant, "s", template(resources, outputs=declared_outputs))
    guests = {name: Guest(service, tenant, server) for name, server in servers.items()}
    for name, guest in guests.items():
        guest.signal(guest.inputs("CREATE"), deploy_stdout=f"from {name}", deploy_status_code=0)
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert outputs(stack) == {
        "all": {"one": "from one", "two": "from two"},
        "one": "from one",
        "codes": {"one": 0, "two": 0},
        "said": {"one": None, "two": None},
    }
    sent = {"stack_name": "new", "template": template(resources, outputs=declared_outputs)}
    preview = service.call("POST", f"/v1/{tenant}/stacks/preview", sent).body["stack"]["resources"]
    [members] = [item for item in preview if isinstance(item, list)]
    assert [item["resource_name"] for item in members] == ["one", "two"]
    assert [item["properties"]["server"] for item in members] == ["server1", "server2"]
    group: Json = resources["group"]["properties"]
    group["input_values"] = {"word": "new"}
    assert (
        service.call("PUT", path, {"template": template(resources, outputs=declared_outputs)}).status == 202
    )
    for name in ("one", "two"):
        inputs = guests[name].inputs("UPDATE")
        statuses = {d["server_id"]: d["status"] for d in deployments(service, tenant)}
        # One after the other.
        assert list(statuses.values()).count("IN_PROGRESS") == 1, statuses
        guests[name].signal(inputs, deploy_stdout=f"again {name}", deploy_status_code=0)
    assert outputs(service.settled(path))["all"] == {"one": "again one", "two": "again two"}
    del servers["two"]
    service.call("PUT", path, {"template": template(resources, outputs=declared_outputs)})
    assert outputs(service.settled(path))["all"] == {"one": "again one"}
    assert [d["server_id"] for d in deployments(service, tenant)] == ["server1"]


@pytest.mark.parametrize("kind", ["Software", "Structured"])
def test_a_group_keeps_its_deployments_when_its_type_gets_the_new_name(
    service: Service, tenant: str, kind: str
) -> None:
    def grouped(name: str) -> Json:
        properties = {
            "config": {"get_resource": "config"},
            "servers": {"one": "server1"},
            "signal_transport": "NO_SIGNAL",
        }
        config = {"type": f"OS::Heat::{kind}Config", "properties": {"group": "script", "config": {}}}
        if kind == "Software":
            config["properties"]["config"] = "x"
        return template({"config": config, "group": {"type": f"OS::Heat::{name}", "properties": properties}})

    def group() -> Json:
        return service.get(f"{path}/resources/group")["resource"]

    old = f"{kind}Deployments"
    new = f"{kind}DeploymentGroup"
    path = service.created(tenant, "s", grouped(old))
    assert group()["resource_type"] == f"OS::Heat::{old}"
    before = group()["physical_resource_id"], deployments(service, tenant)[0]["id"]
    preview = service.call("PUT", f"{path}/preview", {"template": grouped(new)}).body["resource_changes"]
    assert preview["replaced"] == []
    for name in (new, old):
        service.call("PUT", path, {"template": grouped(name)})
        assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
        assert group()["resource_type"] == f"OS::Heat::{name}"
        assert (group()["physical_resource_id"], deployments(service, tenant)[0]["id"]) == before


def test_an_account_is_among_the_inputs_and_its_password_is_never_shown(
    service: Service, tenant: str
) -> None:
    service.create(tenant, "s", {**deploying(signal_transport="HEAT_SIGNAL")})
    inputs = Guest(service, tenant).inputs("CREATE")
    assert "deploy_signal_id" not in inputs
    assert inputs["deploy_auth_url"] == f"{service.url}/v1/identity/v3"
    assert inputs["deploy_project_id"] == tenant
    assert len(inputs["deploy_password"]) == 64
    for config in service.get(f"/v1/{tenant}/software_configs")["software_configs"]:
        config_view = service.call("GET", f"/v1/{tenant}/software_configs/{config['id']}").body
        assert inputs["deploy_password"] not in json.dumps(config_view)


@pytest.mark.parametrize("transport", ["ZAQAR_SIGNAL"])
def test_transports_that_need_other_services_are_refused_with_the_reason(
    service: Service, tenant: str, transport: str
) -> None:
    body = {"stack_name": "s", "template": deploying(signal_transport=transport)}
    answer = service.call("POST", f"/v1/{tenant}/stacks", body)
    assert (answer.status, answer.error["type"]) == (400, "StackValidationFailed")
    assert f"{transport} is not supported: it needs" in answer.error["message"]
    assert "use one of CFN_SIGNAL, TEMP_URL_SIGNAL, HEAT_SIGNAL, NO_SIGNAL" in answer.error["message"]


def test_a_server_without_an_agent_is_refused(service: Service, tenant: str) -> None:
    broken = deploying(server={"get_resource": "server"})
    properties = {"flavor": "f", "image": "i", "networks": [{"network": "n"}]}
    broken["resources"]["server"] = {"type": "OS::Nova::Server", "properties": properties}
    for change in ({}, {"user_data_format": "RAW"}):
        properties.update(change)  # type: ignore[arg-type]
        answer = service.call("POST", f"/v1/{tenant}/validate", {"template": broken})
        assert answer.status == 400
        assert (
            "server's property user_data_format should be set to SOFTWARE_CONFIG" in answer.error["message"]
        )


def test_a_config_of_another_stack_may_be_deployed_until_it_is_deleted(
    service: Service, tenant: str, guest: Guest
) -> None:
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "shared"}}
    owner = service.created(tenant, "owner", template({"config": config}))
    config_id = service.get(f"{owner}/resources/config")["resource"]["physical_resource_id"]
    user = deploying(config=config_id, signal_transport="NO_SIGNAL")
    path = service.created(tenant, "user", user)
    assert [c["config"] for c in guest.deployed()] == ["shared"]
    service.call("DELETE", owner)
    wait_for(lambda: service.get(owner)["stack"]["stack_status"] == "DELETE_COMPLETE")
    user["resources"]["deployment"]["properties"]["input_values"] = {"a": "b"}
    service.call("PUT", path, {"template": user})
    reason = service.settled(path)["stack_status_reason"]
    assert f"Software config with id {config_id} not found" in reason
