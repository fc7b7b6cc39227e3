"""Template, environment, files and outputs of a stack are read as they were given, without its secrets."""

import pytest
from client.serving import Json, Service, fault
from harness.templates import one, template

TEMPLATE = template(
    {"r": one(value={"get_param": "word"})},
    parameters={
        "word": {"type": "string"},
        "secret": {"type": "string", "hidden": True},
        "size": {"type": "number", "default": 1},
    },
    outputs={
        "value": {"value": {"get_attr": ["r", "output"]}, "description": "Of r"},
        "secret": {"value": {"get_param": "secret"}},
        "map": {"value": {"a": [1, {"b": None}], "id": {"get_resource": "r"}}},
    },
)
FILES = {"note.txt": "grüße\n", "nul.bin": "a\0b"}
ENVIRONMENT = {"parameters": {"secret": "s3cret"}, "parameter_defaults": {"word": "default", "secret": "d3f"}}


@pytest.fixture(scope="module")
def path(service: Service) -> str:
    fields = {"environment": ENVIRONMENT, "files": FILES, "parameters": {"word": "given"}}
    return service.created("content", "kept", TEMPLATE, **fields)


def test_the_template_returns_unchanged(service: Service, path: str) -> None:
    assert service.get(f"{path}/template") == TEMPLATE


def test_a_template_in_yaml_returns_parsed(service: Service, tenant: str) -> None:
    text = "heat_template_version: 2018-08-31\nresources:\n  r: {type: OS::Heat::None}\n"
    stored_template = service.get(service.created(tenant, "yaml", text) + "/template")
    assert stored_template == {
        "heat_template_version": "2018-08-31",
        "resources": {"r": {"type": "OS::Heat::None"}},
    }


def test_the_environment_returns_with_its_secrets_masked(service: Service, path: str) -> None:
    environment = service.get(f"{path}/environment")
    assert environment["parameters"] == {"word": "given", "secret": "******"}
    assert environment["parameter_defaults"] == {"word": "default", "secret": "******"}
    assert environment["resource_registry"] == {"resources": {}}
    assert set(environment) == {
        "parameters",
        "parameter_defaults",
        "resource_registry",
        "event_sinks",
        "encrypted_param_names",
    }


def test_environment_files_are_merged_in_their_order(service: Service, tenant: str) -> None:
    files = {"a.yaml": "parameters: {word: first, secret: x}", "b.yaml": "parameters: {word: second}"}
    path = service.created(tenant, "merged", TEMPLATE, files=files, environment_files=["a.yaml", "b.yaml"])
    assert service.get(f"{path}/environment")["parameters"]["word"] == "second"
    assert service.get(path)["stack"]["parameters"]["word"] == "second"


def test_the_files_return_unchanged(service: Service, path: str) -> None:
    assert service.get(f"{path}/files") == FILES


def test_outputs_are_listed_without_their_values(service: Service, path: str) -> None:
    assert service.get(f"{path}/outputs") == {
        "outputs": [
            {"output_key": "value", "description": "Of r"},
            {"output_key": "secret", "description": "No description given"},
            {"output_key": "map", "description": "No description given"},
        ]
    }


@pytest.mark.parametrize(("key", "value"), [("value", "given"), ("secret", "s3cret")])
def test_an_output_is_shown_with_its_value(service: Service, path: str, key: str, value: Json) -> None:
    output = service.get(f"{path}/outputs/{key}")["output"]
    assert (output["output_key"], output["output_value"]) == (key, value)


def test_an_output_may_be_a_tree(service: Service, path: str) -> None:
    physical = service.get(f"{path}/resources/r")["resource"]["physical_resource_id"]
    value = service.get(f"{path}/outputs/map")["output"]["output_value"]
    assert value == {"a": [1, {"b": None}], "id": physical}


def test_an_unknown_output_is_not_found(service: Service, path: str) -> None:
    answer = service.call("GET", f"{path}/outputs/missing")
    assert fault(answer) == (404, "NotFound")
    assert "missing" in answer.error["message"]


def test_an_output_of_a_failed_resource_has_no_value(service: Service, tenant: str) -> None:
    body = template({"r": one(fail=True)}, outputs={"o": {"value": {"get_attr": ["r", "output"]}}})
    path = service.create(tenant, "failing", body)
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "resources.r" in stack["stack_status_reason"]
    assert stack["outputs"][0]["output_value"] is None


def test_texts_of_all_of_unicode_return(service: Service, tenant: str) -> None:
    text = "Ωmega 漢字 😀 \u202e 'quote' \\ %s {x}"
    body = template({text: one(value=text)}, description=text, outputs={text: {"value": text}})
    path = service.created(tenant, "unicode", body, tags=[text])
    stack = service.get(path)["stack"]
    assert (stack["description"], stack["tags"]) == (text, [text])
    assert stack["outputs"][0]["output_value"] == text
    assert service.get(f"{path}/template") == body
    assert service.get(f"{path}/resources")["resources"][0]["resource_name"] == text


@pytest.mark.parametrize("place", ["parameters", "environment"])
@pytest.mark.parametrize(
    "value", [{"$fn": "sealed", "args": ["x"]}, {"$fn": "nonsense"}, {"a": {"$fn": "literal", "args": [1]}}]
)
def test_a_value_that_looks_like_a_stored_function_stays_as_it_was_given(
    service: Service, tenant: str, place: str, value: Json
) -> None:
    document = {
        "heat_template_version": "2018-08-31",
        "parameters": {"p": {"type": "json"}},
        "resources": {"v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}},
        "outputs": {"v": {"value": {"get_attr": ["v", "value"]}}},
    }
    sent = {"parameters": {"p": value}}
    path = service.create(tenant, "s", document, **(sent if place == "parameters" else {"environment": sent}))
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    assert service.get(f"{path}/environment")["parameters"] == {"p": value}
    assert service.call("PATCH", path, {}).status == 202
    stack = service.settled(path)
    assert stack["stack_status"] == "UPDATE_COMPLETE"
    assert [output["output_value"] for output in stack["outputs"]] == [value]
    assert service.call("GET", f"{path}/export").status == 200
