"""A PATCH keeps what the stack has, as far as the new template knows it."""

import json

import pytest
from client.serving import Json, Service, fault
from harness.templates import one, template

TWO: Json = {"kept": {"type": "string"}, "lost": {"type": "string"}}
ONE: Json = {"kept": {"type": "string"}}
GIVEN = {"kept": "k", "lost": "l"}


def parameter_values(service: Service, path: str) -> Json:
    parameters = service.get(path)["stack"]["parameters"]
    return {name: value for name, value in parameters.items() if not name.startswith("OS::")}


@pytest.mark.parametrize("place", ["parameters", "environment"])
def test_the_value_of_a_removed_parameter_is_dropped(service: Service, tenant: str, place: str) -> None:
    fields: Json = {"parameters": GIVEN} if place == "parameters" else {"environment": {"parameters": GIVEN}}
    path = service.created(tenant, "s", template({"a": one()}, parameters=TWO), **fields)
    answer = service.call("PATCH", path, {"template": template({"a": one()}, parameters=ONE)})
    assert answer.status == 202, answer.body
    service.settled(path)
    assert parameter_values(service, path) == {"kept": "k"}
    # It is dropped for good: a template that declares it again needs a value.
    again = service.call("PATCH", path, {"template": template({"a": one()}, parameters=TWO)})
    assert fault(again) == (400, "UserParameterMissing")


@pytest.mark.parametrize("empty", [{}, "", [], None], ids=repr)
@pytest.mark.parametrize(
    "part", ["template_url", "files", "files_container", "environment", "environment_files", "parameters"]
)
def test_a_part_that_is_empty_was_not_sent(service: Service, tenant: str, part: str, empty: Json) -> None:
    body = {"template": template({"a": one()}), part: empty}
    answer = service.call("POST", f"/v1/{tenant}/validate", body)
    assert answer.status == 200, answer.body


def test_a_name_in_an_update_changes_nothing_but_a_header(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one()}))
    body = {"template": template({"a": one()}), "stack_name": "other"}
    answer = service.call("PUT", path, body)
    assert (answer.status, answer.headers["Warning"].split('"')[1].split(":")[0]) == (
        202,
        "stack_name has no effect",
    )
    service.settled(path)
    assert "Warning" not in service.call("PUT", path, {**body, "stack_name": "s"}).headers
    service.settled(path)
    assert service.get(path)["stack"]["stack_name"] == "s"


def test_an_unknown_parameter_of_the_request_is_refused(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one()}, parameters=TWO), parameters=GIVEN)
    body = {"template": template({"a": one()}, parameters=ONE), "parameters": {"lost": "new"}}
    assert fault(service.call("PATCH", path, body)) == (400, "UnknownUserParameter")
    assert fault(service.call("PATCH", path, {"parameters": {"none": "x"}})) == (400, "UnknownUserParameter")


WITH_DEFAULT: Json = {"size": {"type": "string"}, "kind": {"type": "string", "default": "plain"}}


@pytest.mark.parametrize("place", ["environment", "environment_files"])
def test_an_environment_is_merged_over_the_stacks(service: Service, tenant: str, place: str) -> None:
    path = service.created(
        tenant,
        "s",
        template(
            {"a": {"type": "My::Type", "properties": {"value": {"get_param": "size"}}}},
            parameters=WITH_DEFAULT,
        ),
        parameters={"size": "small"},
        environment={
            "parameter_defaults": {"kind": "old"},
            "resource_registry": {"My::Type": "OS::Heat::TestResource", "Other::Type": "OS::Heat::None"},
        },
    )
    environment = {
        "parameters": {"size": "large"},
        "parameter_defaults": {"kind": "new"},
        "resource_registry": {"My::Type": "OS::Heat::None"},
    }
    body: Json = {"environment": environment}
    if place == "environment_files":
        body = {"environment_files": ["e.yaml"], "files": {"e.yaml": json.dumps(environment)}}
    answer = service.call("PATCH", path, body)
    assert answer.status == 202, answer.body
    service.settled(path)
    assert parameter_values(service, path) == {"size": "large", "kind": "new"}
    registry = service.get(f"{path}/environment")["resource_registry"]
    assert (registry["My::Type"], registry["Other::Type"]) == ("OS::Heat::None", "OS::Heat::None")


def test_a_wrong_environment_is_refused(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one()}))
    answer = service.call("PATCH", path, {"environment": {"parameter": {}}})
    assert answer.status == 400
    assert "environment" in answer.error["message"]
