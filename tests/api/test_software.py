"""Software configs and deployments over the API: Heat's shapes and errors, quotas, projects, wrong input."""

import pathlib
import typing
from collections.abc import Iterator

import pytest
from client.serving import Json, Service, fault

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
        given = {"config_id": config_id, "server_id": server_id, **body}
        answer = self.service.call("POST", f"{self.base}deployments", given)
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
    made = software.config(
        name="c",
        group="script",
        config="#!/bin/sh\n",
        inputs=[{"name": "a"}, {"name": "b", "type": "Number", "default": "3", "replace_on_change": True}],
        outputs=[{"name": "o"}, {"name": "e", "type": "Json", "error_output": True, "description": "d"}],
        options={"modulepath": "x"},
    )
    assert set(made) == CONFIG
    assert (made["name"], made["group"], made["config"]) == ("c", "script", "#!/bin/sh\n")
    assert made["inputs"] == [
        {"name": "a", "type": "String"},
        {"name": "b", "type": "Number", "default": 3, "replace_on_change": True},
    ]
    assert made["outputs"] == [
        {"name": "o", "type": "String", "error_output": False},
        {"name": "e", "type": "Json", "error_output": True, "description": "d"},
    ]
    assert made["options"] == {"modulepath": "x"}
    assert software.get(f"configs/{made['id']}") == {"software_config": made}
    [listed] = software.get("configs")["software_configs"]
    assert listed == {name: made[name] for name in LISTED}


def test_a_config_keeps_whatever_json_it_is_given(software: Software) -> None:
    like_a_secret = {"$fn": "sealed", "args": ["x"]}
    for value in (None, {"a": [1, {"b": None}]}, like_a_secret, "é\n", 5):
        made = software.config(config=value)
        assert software.get(f"configs/{made['id']}")["software_config"]["config"] == value
    empty = software.config()
    assert (empty["inputs"], empty["outputs"], empty["options"], empty["group"]) == ([], [], {}, None)


def test_configs_are_listed_the_newest_first_and_by_pages(software: Software) -> None:
    ids = [software.config(name=str(number))["id"] for number in range(3)]
    listed = [c["id"] for c in software.get("configs")["software_configs"]]
    assert sorted(listed) == sorted(ids)
    first = software.get("configs?limit=2")["software_configs"]
    rest = software.get(f"configs?limit=2&marker={first[-1]['id']}")["software_configs"]
    assert [c["id"] for c in [*first, *rest]] == listed
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
    gone = (404, "NotFound", f"Software config with id {config_id} not found")
    assert software.refused("GET", f"configs/{config_id}") == gone
    assert software.refused("DELETE", f"configs/{config_id}") == gone


def test_a_deployment_has_heats_shape_and_is_updated(software: Software) -> None:
    config_id, other_id = software.config(name="a")["id"], software.config(name="b")["id"]
    made = software.deployment(config_id)
    assert set(made) == DEPLOYMENT
    assert (made["action"], made["status"], made["status_reason"]) == ("INIT", "COMPLETE", "")
    assert (made["input_values"], made["output_values"]) == ({}, None)
    made = software.deployment(
        config_id, action="CREATE", status="IN_PROGRESS", status_reason="waits", input_values={"a": [1]}
    )
    assert software.get(f"deployments/{made['id']}") == {"software_deployment": made}
    changed = software.update(
        made["id"], config_id=other_id, status="COMPLETE", output_values={"deploy_stdout": "done"}
    )
    assert set(changed) == DEPLOYMENT | {"updated_time"}
    assert (changed["config_id"], changed["status"], changed["action"]) == (other_id, "COMPLETE", "CREATE")
    assert (changed["input_values"], changed["output_values"]) == ({"a": [1]}, {"deploy_stdout": "done"})
    # As in Heat, what is empty changes nothing.
    assert software.update(made["id"], input_values={}, status_reason="")["input_values"] == {"a": [1]}
    gone = f"deployments/{made['id']}"
    assert software.service.call("DELETE", f"{software.base}{gone}").status == 204
    message = f"Deployment with id {made['id']} not found"
    for method in ("GET", "DELETE", "PUT"):
        assert software.refused(method, gone, {} if method == "PUT" else None) == (404, "NotFound", message)


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
    other = Software(service, "another")
    for method in ("GET", "DELETE"):
        assert other.refused(method, f"configs/{config_id}")[0] == 404
        assert other.refused(method, f"deployments/{deployment_id}")[0] == 404
    assert other.refused("PUT", f"deployments/{deployment_id}", {"status": "FAILED"})[0] == 404
    mine = other.deployment(other.config()["id"])["id"]
    for method, path in (("POST", "deployments"), ("PUT", f"deployments/{mine}")):
        body = {"config_id": config_id, "server_id": "s"}
        assert other.refused(method, path, body) == (
            400,
            "Invalid",
            f"Data supplied was not valid: Config with id {config_id} not found",
        )
    assert [d["id"] for d in other.get("deployments")["software_deployments"]] == [mine]
    assert other.get("deployments/metadata/server")["metadata"] != software.get("deployments/metadata/server")
    for path in (f"configs/{other.get('configs')['software_configs'][0]['id']}", f"deployments/{mine}"):
        assert software.refused("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"inputs": {}}, "inputs: {} is not of type array or null"),
        ({"inputs": ["a"]}, "inputs.0: 'a' is not of type object"),
        ({"inputs": [{}]}, "inputs.0: Property name not assigned"),
        ({"inputs": [{"name": "a", "kind": 1}]}, "inputs.0: Unknown Property kind"),
        ({"inputs": [{"name": "a", "type": "Text"}]}, "inputs.0.type"),
        ({"inputs": [{"name": "a", "type": "Number", "default": "x"}]}, "inputs.0.default"),
        ({"outputs": [{"name": "a", "error_output": "perhaps"}]}, "outputs.0.error_output"),
        ({"options": "x"}, "options: 'x' is not of type object or null"),
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
        ({"server_id": "s"}, "'config_id' is a required property"),
        ({"config_id": UNKNOWN}, "'server_id' is a required property"),
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


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: pathlib.Path = tmp_path_factory.mktemp("strict")
    config = directory / "limits.conf"
    options = ("max_software_configs_per_project = 2", "max_software_deployments_per_project = 1")
    config.write_text("\n".join(("[stacks]", *options)))
    running = Service(directory, conductors=1, config=config)
    try:
        yield running
    finally:
        running.stop()


def test_quotas_are_a_projects_own(strict: Service) -> None:
    software = Software(strict, "one")
    used, spare = software.config()["id"], software.config()["id"]
    deployment_id = software.deployment(used)["id"]
    for path, what, most in (("configs", "configs", 2), ("deployments", "deployments", 1)):
        refused: typing.Any = software.refused("POST", path, {"config_id": used, "server_id": "s"})
        assert refused == (
            400,
            "RequestLimitExceeded",
            f"Request limit exceeded: You have reached the maximum software {what} per tenant, {most}. "
            f"Please delete some {what}.",
        )
    other = Software(strict, "two")
    other.deployment(other.config()["id"])
    strict.call("DELETE", f"{software.base}configs/{spare}")
    strict.call("DELETE", f"{software.base}deployments/{deployment_id}")
    software.config()
    software.deployment(used)
