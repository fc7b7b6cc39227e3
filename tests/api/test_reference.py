"""Heat's API reference: its routes exist, and answers have its fields."""

import pathlib
import re
import typing
from collections.abc import Iterator, Mapping

import pytest
from client.serving import Json, Service
from stoker.cli.wiring.routes import ROUTES

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "heat_reference.md"
ROW = re.compile(r"^\| `([A-Z]+) (\S+)` \|", re.MULTILINE)
TENANT = "/v1/{tenant_id}"
SHORT = {"TENANT": TENANT, "STACK": f"{TENANT}/stacks/{{stack_name}}/{{stack_id}}"}
SERVER = "11111111-2222-4333-8444-555555555555"
TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "description": "A pair",
    "parameters": {"p": {"type": "string", "default": "x", "label": "L", "description": "A value"}},
    "resources": {
        "r": {"type": "OS::Heat::RandomString", "properties": {"length": 8}, "metadata": {"m": 1}},
        "t": {
            "type": "OS::Heat::TestResource",
            "depends_on": "r",
            "properties": {"value": {"get_param": "p"}},
        },
    },
    "outputs": {"o": {"description": "It", "value": {"get_attr": ["r", "value"]}}},
}

LINKS = "links links[].href links[].rel "
LISTED = (
    "creation_time deletion_time description id parent stack_name stack_owner stack_status "
    "stack_status_reason stack_user_project_id tags updated_time " + LINKS
)
SHOWN = (
    LISTED + "capabilities disable_rollback notification_topics parameters parameters.OS::stack_id "
    "parameters.OS::stack_name parameters.OS::project_id template_description timeout_mins outputs "
    "outputs[].output_key outputs[].output_value outputs[].description "
)
RESOURCE = (
    "creation_time logical_resource_id physical_resource_id required_by resource_name resource_status "
    "resource_status_reason resource_type updated_time " + LINKS
)
EVENT = (
    "event_time id logical_resource_id physical_resource_id resource_name resource_status "
    "resource_status_reason " + LINKS
)
DATA = "action environment files id name project_id resources stack_user_project_id status tags template "
LISTED_SNAPSHOT = "id name status status_reason creation_time "
SNAPSHOT = LISTED_SNAPSHOT + "data "
CONFIG = "creation_time group id name "
WHOLE_CONFIG = CONFIG + "config inputs outputs options "
LISTED_DEPLOYMENT = "action config_id creation_time id server_id status status_reason updated_time "
DEPLOYMENT = LISTED_DEPLOYMENT + "input_values output_values "
TYPE = "resource_type attributes properties support_status support_status.status support_status.version"
FIELDS: Mapping[str, tuple[str, str]] = {
    "GET /": ("versions[]", "id status " + LINKS),
    "POST TENANT/stacks": ("stack", "id " + LINKS),
    "GET TENANT/stacks": ("stacks[]", LISTED),
    "GET TENANT/stacks/detail": ("stacks[]", LISTED),
    "GET STACK": ("stack", SHOWN),
    "GET STACK/export": ("", DATA),
    "GET STACK/environment": ("", "encrypted_param_names event_sinks parameter_defaults parameters"),
    "GET STACK/outputs": ("outputs[]", "output_key description"),
    "GET STACK/outputs/o": ("output", "output_key output_value description"),
    "GET STACK/resources": ("resources[]", RESOURCE),
    "GET STACK/resources/r": ("resource", RESOURCE + "attributes description"),
    "GET STACK/resources/r/metadata": ("metadata", "m"),
    "GET STACK/events": ("events[]", EVENT),
    "GET STACK/resources/r/events": ("events[]", EVENT),
    "GET STACK/resources/r/events/EVENT": ("event", EVENT + "resource_type resource_properties"),
    "POST STACK/snapshots": ("", SNAPSHOT),
    "GET STACK/snapshots": ("snapshots[]", LISTED_SNAPSHOT),
    "GET STACK/snapshots/SNAPSHOT": ("snapshot", SNAPSHOT),
    "GET TENANT/template_versions": ("template_versions[]", "aliases type version"),
    "GET TENANT/template_versions/heat_template_version.2018-08-31/functions": (
        "template_functions[]",
        "description functions",
    ),
    "GET TENANT/resource_types": ("", "resource_types"),
    "GET TENANT/resource_types?with_description=true": ("resource_types[]", "resource_type description"),
    "GET TENANT/resource_types/OS::Heat::RandomString": ("", TYPE),
    "GET TENANT/resource_types/OS::Heat::RandomString/template": (
        "",
        "Description HeatTemplateFormatVersion Outputs Parameters Resources",
    ),
    "GET TENANT/resource_types/OS::Heat::RandomString/template?template_type=hot": (
        "",
        "description heat_template_version outputs parameters resources",
    ),
    "GET TENANT/build_info": ("", "api.revision engine.revision"),
    "GET TENANT/services": (
        "services[]",
        "binary created_at deleted_at engine_id host hostname id report_interval status topic updated_at",
    ),
    "GET TENANT/software_configs": ("software_configs[]", CONFIG),
    "GET TENANT/software_configs/CONFIG": ("software_config", WHOLE_CONFIG),
    "GET TENANT/software_deployments": ("software_deployments[]", LISTED_DEPLOYMENT),
    "GET TENANT/software_deployments/DEPLOYMENT": ("software_deployment", DEPLOYMENT),
    f"GET TENANT/software_deployments/metadata/{SERVER}": ("metadata[]", WHOLE_CONFIG),
}
"""Request -> where its answer has the object, and the object's fields."""
BODIES: Mapping[str, Json] = {
    "POST TENANT/stacks": {"stack_name": "other", "template": TEMPLATE},
    "POST STACK/snapshots": {"name": "again"},
    "POST TENANT/validate": {"template": TEMPLATE},
    "POST TENANT/stacks/preview": {"stack_name": "third", "template": TEMPLATE},
    "PUT STACK/preview": {"template": TEMPLATE},
}
FIELDS |= {
    "POST TENANT/validate": ("", "Description Environment Parameters Parameters.p.Type Parameters.p.Label"),
    "POST TENANT/stacks/preview": (
        "stack",
        "capabilities creation_time deletion_time description disable_rollback id notification_topics "
        "parameters parent resources resources[].resource_name resources[].resource_identity "
        "resources[].attributes stack_name stack_owner tags template_description timeout_mins updated_time "
        + LINKS,
    ),
    "PUT STACK/preview": (
        "resource_changes",
        "added deleted replaced unchanged updated unchanged[].resource_name unchanged[].stack_identity",
    ),
}


def _path(short: str) -> str:
    for name, path in SHORT.items():
        short = re.sub(f"^{name}", path, short)
    return short


def test_every_route_of_heat_exists() -> None:
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) > 50
    assert [row for row in rows if row[0] not in ROUTES.get(_path(row[1]), {})] == []


class Places(typing.NamedTuple):
    """The values of the names in a route, and the service that is asked."""

    service: Service
    names: Mapping[str, str]

    def ask(self, request: str) -> Json:
        method, path = request.split(" ")
        for name, value in self.names.items():
            path = re.sub(
                rf"(^|/){name}\b", lambda match, value=value: match[1] * (value[:1] != "/") + value, path
            )
        answer = self.service.call(method, path, BODIES.get(request))
        assert answer.status <= 300, answer
        return answer.body


@pytest.fixture(scope="module")
def places(service: Service) -> Places:
    stack = service.created("reference", "pair", TEMPLATE)
    root = stack.partition("/stacks/")[0]
    snapshot = service.call("POST", f"{stack}/snapshots", {"name": "first"}).body["id"]
    service.settled(stack)
    [event, *_] = service.get(f"{stack}/resources/r/events")["events"]
    config_fields = {"name": "c", "group": "script", "config": "true", "inputs": [], "outputs": []}
    config = service.call("POST", f"{root}/software_configs", config_fields).body["software_config"]["id"]
    body = {"config_id": config, "server_id": SERVER, "action": "CREATE", "status": "COMPLETE"}
    answer = service.call("POST", f"{root}/software_deployments", body)
    deployment_id = answer.body["software_deployment"]["id"]
    changed = {"status": "COMPLETE", "output_values": {"deploy_stdout": "x"}}
    service.call("PUT", f"{root}/software_deployments/{deployment_id}", changed)
    names = {"STACK": stack, "TENANT": root, "EVENT": event["id"]}
    return Places(service, {**names, "SNAPSHOT": snapshot, "CONFIG": config, "DEPLOYMENT": deployment_id})


@pytest.mark.parametrize("request_line", FIELDS, ids=lambda line: line.replace("/", ":"))
def test_answers_have_the_fields_of_the_reference(places: Places, request_line: str) -> None:
    where, fields = FIELDS[request_line]
    answer = places.ask(request_line)
    present = {key.removeprefix(f"{where}.") for key in _keys(answer)}
    assert set(fields.split()) - present == set()


def _keys(value: Json, path: str = "") -> Iterator[str]:
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _keys(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item, f"{path}[]")
