"""Software configs and deployments over the API: Heat's shapes and errors, quotas, projects, wrong input."""

import typing
from collections.abc import Iterator

import pytest
from client.serving import Json, Service, fault, serving
from harness.templates import template
from harness.waiting import wait_for

UNKNOWN = "00000000-0000-4000-8000-000000000000"
LISTED = {"id", "name", "group", "creation_time"}
CONFIG = LISTED | {"config", "inputs", "outputs", "options"}
DEPLOYMENT = {
    *("id", "server_id", "config_id", "input_values", "output_values"),
    *("action", "status", "status_reason", "creation_time"),
}


class Software:
    """The configs and deployments of a project."""

    def __init__(self, service: Service, tenant: str) -> None:
        self.service = service
        self.base = f"/v1/{tenant}/software_"

    def config(self, **body: Json) -> Json:
        answer = self.service.call("POST", f"{self.base}configs", body)
        assert answer.status == 200, answer
        return answer.body["software_config"]

    def deployment(self, config_id: str, server_id: str = "server", **body: Json) -> Json:
        fields = {"config_id": config_id, "server_id": server_id, **body}
        answer = self.service.call("POST", f"{self.base}deployments", fields)
        assert answer.status == 200, answer
        return answer.body["software_deployment"]

    def update(self, deployment_id: str, **body: Json) -> Json:
        answer = self.service.call("PUT", f"{self.base}deployments/{deployment_id}", body)
        assert answer.status == 200, answer
        return answer.body["software_deployment"]

    def get(self, path: str) -> Json:
        return self.service.get(f"{self.base}{path}")

    def refused(self, method: str, path: str, body: Json = None) -> tuple[int, str, str]:
        """Status, type and text of the fault."""
        answer = self.service.call(method, f"{self.base}{path}", body)
        return (*fault(answer), answer.error["message"])


@pytest.fixture
def software(service: Service, tenant: str) -> Software:
    return Software(service, tenant)


def test_a_config_has_heats_shape(software: Software) -> None:
    config = software.config(
        name="c",
        group="script",
        config="#!/bin/sh\n",
        inputs=[{"name": "a"}, {"name": "b", "type": "Number", "default": "3", "replace_on_change": True}],
        outputs=[{"name": "o"}, {"name": "e", "type": "Json", "error_output": True, "description": "d"}],
        options={"modulepath": "x"},
    )
    assert set(config) == CONFIG
    assert (config["name"], config["group"], config["config"]) == ("c", "script", "#!/bin/sh\n")
    assert config["inputs"] == [
        {"name": "a", "type": "String"},
        {"name": "b", "type": "Number", "default": 3, "replace_on_change": True},
    ]
    assert config["outputs"] == [
        {"name": "o", "type": "String", "error_output": False},
        {"name": "e", "type": "Json", "error_output": True, "description": "d"},
    ]
    assert config["options"] == {"modulepath": "x"}
    assert software.get(f"configs/{config['id']}") == {"software_config": config}
    [listed] = software.get("configs")["software_configs"]
    assert listed == {name: config[name] for name in LISTED}


def test_a_config_keeps_whatever_json_it_is_given(software: Software) -> None:
    like_a_secret = {"$fn": "sealed", "args": ["x"]}
    for value in (None, {"a": [1, {"b": None}]}, like_a_secret, "é\n", 5):
        config = software.config(config=value)
        assert software.get(f"configs/{config['id']}")["software_config"]["config"] == value
    empty = software.config()
    assert (empty["inputs"], empty["outputs"], empty["options"], empty["group"]) == ([], [], {}, None)


def test_configs_are_listed_the_newest_first_and_by_pages(software: Software) -> None:
    ids = [software.config(name=str(number))["id"] for number in range(3)]
    listed = [c["id"] for c in software.get("configs")["software_configs"]]
    assert sorted(listed) == sorted(ids)
    first = software.get("configs?limit=2")["software_configs"]
    second = software.get(f"configs?limit=2&marker={first[-1]['id']}")["software_configs"]
    assert [c["id"] for c in [*first, *second]] == listed
    assert software.refused("GET", "configs?global_tenant=true")[:2] == (403, "Forbidden")


def test_a_config_that_is_deployed_cannot_be_deleted(software: Software) -> None:
    config_id = software.config()["id"]
    deployment_id = software.deployment(config_id)["id"]
    assert software.refused("DELETE", f"configs/{config_id}") == (
        400,
        "InvalidRestrictedAction",
        f"Software config with id {config_id} can not be deleted as it is referenced.",
    )
    assert software.service.call("DELETE", f"{software.base}deployments/{deployment_id}").status == 204
    assert software.service.call("DELETE", f"{software.base}configs/{config_id}").status == 204
    refusal = (404, "NotFound", f"Software config with id {config_id} not found")
    assert software.refused("GET", f"configs/{config_id}") == refusal
    assert software.refused("DELETE", f"configs/{config_id}") == refusal


def test_a_deployment_has_heats_shape_and_is_updated(software: Software) -> None:
    config_id = software.config(name="a")["id"]
    other_id = software.config(name="b")["id"]
    deployment = software.deployment(config_id)
    assert set(deployment) == DEPLOYMENT
    assert (deployment["action"], deployment["status"], deployment["status_reason"]) == (
        "INIT",
        "COMPLETE",
        "",
    )
    assert (deployment["input_values"], deployment["output_values"]) == ({}, None)
    deployment = software.deployment(
        config_id, action="CREATE", status="IN_PROGRESS", status_reason="waits", input_values={"a": [1]}
    )
    assert software.get(f"deployments/{deployment['id']}") == {"software_deployment": deployment}
    changed = software.update(
        deployment["id"], config_id=other_id, status="COMPLETE", output_values={"deploy_stdout": "done"}
    )
    assert set(changed) == DEPLOYMENT | {"updated_time"}
    assert (changed["config_id"], changed["status"], changed["action"]) == (other_id, "COMPLETE", "CREATE")
    assert (changed["input_values"], changed["output_values"]) == ({"a": [1]}, {"deploy_stdout": "done"})
    # As in Heat, what is empty changes nothing.
    assert software.update(deployment["id"], input_values={}, status_reason="")["input_values"] == {"a": [1]}
    deleted = f"deployments/{deployment['id']}"
    assert software.service.call("DELETE", f"{software.base}{deleted}").status == 204
    message = f"Deployment with id {deployment['id']} not found"
    for method in ("GET", "DELETE", "PUT"):
        assert software.refused(method, deleted, {} if method == "PUT" else None) == (
            404,
            "NotFound",
            message,
        )


def test_the_metadata_of_a_server_are_the_configs_by_their_names(software: Software) -> None:
    configs = {name: software.config(name=name, config=name.upper()) for name in ("b", "a", "c")}
    for name, server in (("b", "one"), ("a", "one"), ("c", "two")):
        software.deployment(configs[name]["id"], server)
    assert software.get("deployments/metadata/one") == {"metadata": [configs["a"], configs["b"]]}
    assert software.get("deployments/metadata/none") == {"metadata": []}
    by_server = software.get("deployments?server_id=two")["software_deployments"]
    assert [d["server_id"] for d in by_server] == ["two"]
    assert len(software.get("deployments")["software_deployments"]) == 3


def test_other_projects_see_and_use_nothing(service: Service, software: Software) -> None:
    config_id = software.config()["id"]
    deployment_id = software.deployment(config_id)["id"]
    other_project = Software(service, "another")
    for method in ("GET", "DELETE"):
        assert other_project.refused(method, f"configs/{config_id}")[0] == 404
        assert other_project.refused(method, f"deployments/{deployment_id}")[0] == 404
    assert other_project.refused("PUT", f"deployments/{deployment_id}", {"status": "FAILED"})[0] == 404
    own_id = other_project.deployment(other_project.config()["id"])["id"]
    for method, path in (("POST", "deployments"), ("PUT", f"deployments/{own_id}")):
        body = {"config_id": config_id, "server_id": "s"}
        assert other_project.refused(method, path, body) == (
            400,
            "Invalid",
            f"Data supplied was not valid: Config with id {config_id} not found",
        )
    assert [d["id"] for d in other_project.get("deployments")["software_deployments"]] == [own_id]
    assert other_project.get("deployments/metadata/server")["metadata"] != software.get(
        "deployments/metadata/server"
    )
    for path in (
        f"configs/{other_project.get('configs')['software_configs'][0]['id']}",
        f"deployments/{own_id}",
    ):
        assert software.refused("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"inputs": {}}, "inputs: {} is not of type array or null"),
        ({"inputs": ["a"]}, 'inputs.0: "a" is not of type object'),
        ({"inputs": [{}]}, "inputs.0: Property name not assigned"),
        ({"inputs": [{"name": "a", "kind": 1}]}, "inputs.0: Unknown Property kind"),
        ({"inputs": [{"name": "a", "type": "Text"}]}, "inputs.0.type"),
        ({"inputs": [{"name": "a", "type": "Number", "default": "x"}]}, "inputs.0.default"),
        ({"outputs": [{"name": "a", "error_output": "perhaps"}]}, "outputs.0.error_output"),
        ({"options": "x"}, 'options: "x" is not of type object or null'),
        ({"name": "x" * 256}, "name"),
    ],
)
def test_a_wrong_config_is_refused_with_the_place(software: Software, body: Json, text: str) -> None:
    status, _, message = software.refused("POST", "configs", body)
    assert (status, text in message) == (400, True), message
    assert software.get("configs")["software_configs"] == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"server_id": "s"}, '"config_id" is required'),
        ({"config_id": UNKNOWN}, '"server_id" is required'),
        ({"config_id": UNKNOWN, "server_id": "s"}, f"Config with id {UNKNOWN} not found"),
        ({"config_id": UNKNOWN, "server_id": ""}, "server_id"),
        ({"config_id": UNKNOWN, "server_id": "s", "input_values": []}, "input_values"),
        (
            {"config_id": UNKNOWN, "server_id": "s", "stack_user_project_id": "x" * 65},
            "stack_user_project_id",
        ),
    ],
)
def test_a_wrong_deployment_is_refused_with_the_place(software: Software, body: Json, text: str) -> None:
    status, _, message = software.refused("POST", "deployments", body)
    assert (status, text in message) == (400, True), message
    assert software.get("deployments")["software_deployments"] == []


OPTIONS = """\
[stacks]
max_software_configs_per_project = 4
max_software_deployments_per_project = 3
max_software_config = 1000
max_software_deployment = 900
max_software_of_server = 1800
max_software_of_project = 68000
"""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("strict"), OPTIONS) as service:
        yield service


def test_quotas_are_a_projects_own(strict: Service) -> None:
    software = Software(strict, "one")
    used, *spare = [software.config()["id"] for _ in range(4)]
    for _ in range(3):
        software.deployment(used)
    for path, kind, most in (("configs", "configs", 4), ("deployments", "deployments", 3)):
        refused: typing.Any = software.refused("POST", path, {"config_id": used, "server_id": "s"})
        assert refused == (
            400,
            "RequestLimitExceeded",
            f"Request limit exceeded: You have reached the maximum software {kind} per tenant, {most}. "
            f"Please delete some {kind}.",
        )
    second_project = Software(strict, "two")
    second_project.deployment(second_project.config()["id"])
    strict.call("DELETE", f"{software.base}configs/{spare[0]}")
    software.config()


LONG = "x" * 1000
LIMIT = "Request limit exceeded: "


def test_what_is_too_large_is_refused(strict: Service) -> None:
    software = Software(strict, "large")
    kind = "RequestLimitExceeded"
    fixed = len('{"config":"","inputs":[],"outputs":[],"options":{}}')
    software.config(config=LONG[: 1000 - fixed])
    text = f"{LIMIT}The config has 1001 bytes, above the limit of 1000 ([stacks] max_software_config)"
    assert software.refused("POST", "configs", {"config": LONG[: 1001 - fixed]}) == (400, kind, text)
    config_id = software.config()["id"]
    body = {"config_id": config_id, "server_id": "s", "input_values": {"a": LONG}}
    text = f"{LIMIT}input_values has 1008 bytes, above the limit of 900 ([stacks] max_software_deployment)"
    assert software.refused("POST", "deployments", body) == (400, kind, text)
    deployed = software.deployment(config_id, input_values={"a": "b"})
    for name in ("input_values", "output_values"):
        refused = software.refused("PUT", f"deployments/{deployed['id']}", {name: {"a": LONG}})
        assert (refused[:2], refused[2].startswith(LIMIT + name)) == ((400, kind), True)
    [listed] = software.get("deployments")["software_deployments"]
    deployment = software.get(f"deployments/{deployed['id']}")["software_deployment"]
    assert (deployment["input_values"], deployment["output_values"]) == ({"a": "b"}, None)
    assert deployment == {**listed, "input_values": {"a": "b"}, "output_values": None}


def test_the_configs_of_a_server_are_no_larger_than_its_agent_may_read(strict: Service) -> None:
    software = Software(strict, "server")
    large = software.config(config=LONG[:900])["id"]
    small = software.config()["id"]
    software.deployment(large, "s")
    text = "Request limit exceeded: The configs that are deployed to the server s would have "
    body = {"config_id": large, "server_id": "s"}
    refused = software.refused("POST", "deployments", body)
    assert (refused[:2], refused[2].startswith(text)) == ((400, "RequestLimitExceeded"), True), refused
    fits = software.deployment(small, "s")
    assert software.refused("PUT", f"deployments/{fits['id']}", {"config_id": large}) == refused
    software.deployment(large, "other")


def test_deployments_are_listed_by_pages(strict: Service) -> None:
    software = Software(strict, "pages")
    config_id = software.config()["id"]
    ids = [software.deployment(config_id)["id"] for _ in range(3)]
    first = software.get("deployments?limit=2")["software_deployments"]
    second = software.get(f"deployments?limit=2&marker={first[-1]['id']}")["software_deployments"]
    assert sorted(d["id"] for d in (*first, *second)) == sorted(ids)
    assert (len(first), len(second)) == (2, 1)
    other_project = Software(strict, "strange")
    for unknown in (UNKNOWN, ids[0]):
        assert other_project.refused("GET", f"deployments?marker={unknown}")[:2] == (404, "EntityNotFound")


def test_a_resource_that_is_too_large_fails(strict: Service) -> None:
    text = {"type": "OS::Heat::RandomString", "properties": {"length": 512}}
    value = {"list_join": ["", [{"get_attr": ["r", "value"]}, {"get_attr": ["r", "value"]}]]}
    too_large = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": value}}
    path = strict.create("resources", "s", template({"r": text, "c": too_large}))
    reason = strict.settled(path)["stack_status_reason"]
    assert "above the limit of 1000 ([stacks] max_software_config)" in reason


def test_a_config_whose_text_is_known_is_refused_at_the_request(strict: Service) -> None:
    too_large = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": LONG}}
    body = {"stack_name": "t", "template": template({"c": too_large})}
    answer = strict.call("POST", "/v1/resources/stacks", body)
    text = "the config has 1002 bytes, above the limit of 1000 ([stacks] max_software_config)"
    assert text in answer.error["message"], answer


def test_a_deployment_fails_if_the_project_has_no_room_for_its_outputs(strict: Service) -> None:
    """Its server would not signal them again."""
    config = {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "c", "outputs": [{"name": "o"}]}}
    properties = {"config": {"get_resource": "c"}, "server": "s", "signal_transport": "CFN_SIGNAL"}
    waits = {"type": "OS::Heat::SoftwareDeployment", "properties": properties}
    path = strict.create("outputs", "s", template({"c": config, "d": waits}))
    software = Software(strict, "outputs")
    wait_for(
        lambda: [d["status"] for d in software.get("deployments")["software_deployments"]] == ["IN_PROGRESS"]
    )
    answer = strict.call("POST", f"{path}/resources/d/signal", {"o": "x" * 70000})
    assert answer.status == 200, answer
    reason = strict.settled(path)["stack_status_reason"]
    assert (
        "The outputs are not stored: Request limit exceeded: The software configs and deployments" in reason
    )
