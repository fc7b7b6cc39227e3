"""The API's views of the installation: versions, health, types, functions, services, validation, preview."""

import datetime
import json
import re

import pytest
from client.serving import Json, Service, fault
from harness.templates import chain, one, template
from harness.waiting import wait_for


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/"])
def test_the_versions_are_listed(service: Service, path: str) -> None:
    answer = service.call("GET", path)
    assert answer.status == 300
    link = {"href": f"{service.url}/v1/", "rel": "self"}
    assert answer.body == {"versions": [{"id": "v1.0", "status": "CURRENT", "links": [link]}]}


def test_the_service_is_healthy(service: Service) -> None:
    assert service.get("/healthcheck") == "OK"


def test_links_lead_to_where_the_client_came_from(service: Service, tenant: str) -> None:
    service.create(tenant, "s", chain(1))
    answer = service.call("GET", f"/v1/{tenant}/stacks", headers={"Host": "localhost:9999"})
    assert answer.body["stacks"][0]["links"][0]["href"].startswith("http://localhost:9999/v1/")


def test_foreign_pages_and_names_are_refused(service: Service, tenant: str) -> None:
    for header in ({"Origin": "https://evil.example"}, {"Host": "evil.example:8004"}):
        answer = service.call("GET", f"/v1/{tenant}/stacks", headers=header)
        assert fault(answer) == (403, "Forbidden"), answer.body


def test_a_slash_at_the_end_changes_nothing(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", chain(1))
    assert service.get(f"{path}/") == service.get(path)
    assert service.get(f"/v1/{tenant}/stacks/")["stacks"][0]["stack_name"] == "s"


def test_each_answer_has_a_request_id_of_its_own(service: Service, tenant: str) -> None:
    ids = {
        service.call("GET", f"/v1/{tenant}/stacks{below}").headers["X-Openstack-Request-Id"]
        for below in ("", "/", "/missing", "?limit=x")
    }
    assert len(ids) == 4
    assert all(re.fullmatch("req-[0-9a-f-]{36}", request_id) for request_id in ids)


def test_services_are_the_conductors_with_heats_fields(service: Service, tenant: str) -> None:
    def settled() -> bool:
        """A conductor reports once a second what it owns."""
        rows = service.get(f"/v1/{tenant}/services")["services"]
        return sum(row["shards_owned"] for row in rows if row["status"] == "up") == 4096

    wait_for(settled)
    began = datetime.datetime.now(datetime.UTC).replace(microsecond=0)

    def updated(row: Json) -> datetime.datetime:
        return datetime.datetime.strptime(row["updated_at"], "%Y-%m-%dT%H:%M:%S%z")

    def reported() -> bool:
        """Each conductor has reported since the test began, by the clock of both."""
        rows = service.get(f"/v1/{tenant}/services")["services"]
        return all(began <= updated(row) <= datetime.datetime.now(datetime.UTC) for row in rows)

    wait_for(reported)
    rows = service.get(f"/v1/{tenant}/services")["services"]
    assert [row["hostname"] for row in rows] == ["conductor-1", "conductor-2"]
    for row in rows:
        assert {"id", "binary", "host", "engine_id", "topic", "report_interval", "deleted_at"} <= set(row)
        assert row["binary"] == "stoker-conductor"


def test_the_build_is_shown(service: Service, tenant: str) -> None:
    build = service.get(f"/v1/{tenant}/build_info")
    assert set(build) == {"api", "engine"}
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", build["api"]["revision"])


def test_every_type_that_is_listed_has_a_schema_and_templates(service: Service, tenant: str) -> None:
    root = f"/v1/{tenant}/resource_types"
    names = service.get(root)["resource_types"]
    assert "OS::Heat::TestResource" in names
    assert names == sorted(names)
    for name in names:
        schema = service.get(f"{root}/{name}")
        assert schema["resource_type"] == name
        assert set(schema) == {"resource_type", "properties", "attributes", "support_status"}
        assert service.get(f"{root}/{name}?with_description=True")["description"]
        assert "heat_template_version" in service.get(f"{root}/{name}/template?template_type=hot")
        assert "HeatTemplateFormatVersion" in service.get(f"{root}/{name}/template")


@pytest.mark.parametrize(
    ("query", "some", "none"),
    [
        ("name=OS::Heat::Wait", "OS::Heat::WaitCondition", "OS::Heat::None"),
        ("support_status=SUPPORTED", "OS::Heat::WaitCondition", "No::Such"),
        ("support_status=DEPRECATED", None, "OS::Heat::None"),
        ("name=(", None, "OS::Heat::None"),
    ],
)
def test_types_are_filtered(service: Service, tenant: str, query: str, some: str | None, none: str) -> None:
    names = service.get(f"/v1/{tenant}/resource_types?{query}")["resource_types"]
    assert some is None or some in names
    assert none not in names


def test_functions_differ_by_version_and_conditions_are_shown_if_requested(
    service: Service, tenant: str
) -> None:
    def names(version: str, query: str = "") -> set[str]:
        url = f"/v1/{tenant}/template_versions/heat_template_version.{version}/functions{query}"
        return {item["functions"] for item in service.get(url)["template_functions"]}

    assert "yaql" in names("2021-04-16")
    assert "yaql" not in names("2013-05-23")
    assert names("wallaby") == names("2021-04-16")
    assert "equals" in names("2021-04-16", "?with_condition_func=True") - names("2021-04-16")


def test_get_file_is_described_in_the_words_that_heats_own_test_expects(
    service: Service, tenant: str
) -> None:
    """gabbits/templates.yaml of heat-tempest-plugin compares this one text."""
    url = f"/v1/{tenant}/template_versions/heat_template_version.2016-04-08/functions"
    texts = {item["functions"]: item["description"] for item in service.get(url)["template_functions"]}
    assert texts["get_file"] == "A function for including a file inline."


def validate(service: Service, tenant: str, body: Json, **fields: Json) -> Json:
    answer = service.call("POST", f"/v1/{tenant}/validate", {"template": body, **fields})
    assert answer.status == 200, answer
    return answer.body


def test_validation_shows_the_parameters(service: Service, tenant: str) -> None:
    body = template(
        {"r": one(value={"get_param": "a"})},
        description="d",
        parameters={"a": {"type": "string"}, "b": {"type": "json", "default": {"x": 1}}},
        parameter_groups=[{"label": "g", "parameters": ["a"]}],
    )
    assert validate(service, tenant, body) == {
        "Description": "d",
        "Parameters": {
            "a": {"Type": "String", "Description": "", "NoEcho": "false", "Label": "a"},
            "b": {"Type": "Json", "Description": "", "NoEcho": "false", "Label": "b", "Default": {"x": 1}},
        },
        "Warnings": ["parameters.b: nothing uses this parameter"],
        "ParameterGroups": [{"label": "g", "parameters": ["a"]}],
        "Environment": {
            "parameters": {},
            "parameter_defaults": {},
            "resource_registry": {"resources": {}},
            "event_sinks": [],
        },
    }
    with_values = validate(service, tenant, body, parameters={"a": "v"})
    assert with_values["Parameters"]["a"]["Value"] == "v"
    assert with_values["Environment"]["parameters"] == {"a": "v"}


def test_a_form_that_is_filled_from_a_validation_creates_the_stack_with_its_hidden_values(
    service: Service, tenant: str
) -> None:
    """Send all fields as Horizon does: each has the value, or else the default."""
    hidden = {"type": "string", "hidden": True}
    body = template(
        {"r": one()},
        parameters={"declared": {**hidden, "default": "f1rst"}, "defaulted": hidden, "given": hidden},
        outputs={name: {"value": {"get_param": name}} for name in ("declared", "defaulted", "given")},
    )
    environment = {"parameter_defaults": {"defaulted": "s3cond"}, "parameters": {"given": "th1rd"}}
    validation = validate(service, tenant, body, environment=environment)
    assert validation["Environment"]["parameter_defaults"] == {"defaulted": "s3cond"}
    assert validation["Environment"]["parameters"] == {"given": "th1rd"}
    assert all(field["NoEcho"] == "true" for field in validation["Parameters"].values())
    form = {
        name: field["Value"] if "Value" in field else field["Default"]
        for name, field in validation["Parameters"].items()
    }
    path = service.created(tenant, "form", body, parameters=form)
    values = {item["output_key"]: item["output_value"] for item in service.get(path)["stack"]["outputs"]}
    assert values == {"declared": "f1rst", "defaulted": "s3cond", "given": "th1rd"}
    for answer in (
        service.get(path)["stack"]["parameters"],
        service.get(f"{path}/environment")["parameters"],
    ):
        assert [answer[name] for name in form] == ["******"] * 3


@pytest.mark.parametrize("values", [{}, {"a": "v"}])
@pytest.mark.parametrize("wrong", ["OS::No::Such", 5, None])
def test_validation_finds_wrong_types_also_where_values_are_missing(
    service: Service, tenant: str, wrong: Json, values: Json
) -> None:
    body = template({"r": {"type": wrong}}, parameters={"a": {"type": "string"}})
    answer = service.call("POST", f"/v1/{tenant}/validate", {"template": body, "parameters": values})
    assert fault(answer) == (400, "StackValidationFailed")
    assert "resources.r" in answer.error["message"]


def test_a_preview_shows_a_creation_and_stores_nothing(service: Service, tenant: str) -> None:
    body = {"stack_name": "dry", "template": chain(2), "tags": "a", "timeout_mins": 3}
    answer = service.call("POST", f"/v1/{tenant}/stacks/preview", body)
    assert answer.status == 200
    stack = answer.body["stack"]
    assert (stack["stack_name"], stack["tags"], stack["timeout_mins"]) == ("dry", ["a"], 3)
    assert stack["description"] == "No description"
    assert stack["links"] == [{"href": f"{service.url}/v1/{tenant}/stacks/dry/None", "rel": "self"}]
    first, second = stack["resources"]
    assert (first["resource_name"], first["required_by"]) == ("r0", ["r1"])
    assert (first["properties"]["value"], first["properties"]["wait_secs"]) == ("x", 0)
    assert first["resource_identity"]["path"] == "/resources/r0"
    assert second["properties"]["value"] == {"get_attr": ["r0", "output"]}
    assert second["physical_resource_id"] == ""
    assert (stack["creation_time"], first["creation_time"], first["updated_time"]) == (None, None, None)
    assert stack["parameters"]["OS::stack_id"] == "None"
    assert (first["attributes"]["output"], first["resource_action"]) == (None, "INIT")
    assert service.get(f"/v1/{tenant}/stacks") == {"stacks": []}


def test_a_preview_has_the_resources_of_nested_stacks_in_their_places(service: Service, tenant: str) -> None:
    inner = template(
        {"inside": one(value={"get_param": "value"})},
        parameters={"value": {"type": "string"}},
        outputs={"o": {"value": {"get_attr": ["inside", "output"]}}},
    )
    child = {"type": "inner.yaml", "properties": {"value": "abc"}}
    fed = {"type": "inner.yaml", "properties": {"value": {"get_attr": ["child", "o"]}}}
    members = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": 3,
            "removal_policies": [{"resource_list": ["1"]}],
            "resource_def": {"type": "inner.yaml", "properties": {"value": "n%index%"}},
        },
    }
    body = {
        "stack_name": "dry",
        "template": template({"child": child, "fed": fed, "group": members}),
        "files": {"inner.yaml": json.dumps(inner)},
    }
    answer = service.call("POST", f"/v1/{tenant}/stacks/preview", body)
    assert answer.status == 200, answer
    groups = [item for item in answer.body["stack"]["resources"] if isinstance(item[0], list)]
    stacks = {
        item[0]["parent_resource"]: item for item in answer.body["stack"]["resources"] if item not in groups
    }
    [inside] = stacks["child"]
    assert (inside["resource_name"], inside["stack_name"]) == ("inside", "dry-child")
    assert (inside["properties"]["value"], inside["stack_identity"]["stack_id"]) == ("abc", "None")
    assert stacks["fed"][0]["properties"]["value"] is None
    [group] = groups
    assert [[resource["properties"]["value"] for resource in member] for member in group] == [
        ["n0"],
        ["n2"],
        ["n3"],
    ]
    assert [member[0]["stack_name"] for member in group] == [f"dry-group-{n}" for n in (0, 2, 3)]


def test_health_answers_requests_for_the_status_only(service: Service) -> None:
    for method in ("GET", "HEAD"):
        assert service.call(method, "/healthcheck").status == 200


def test_no_metrics_are_served_where_they_are_disabled(service: Service) -> None:
    assert service.call("GET", "/metrics").status == 404
