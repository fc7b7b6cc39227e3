"""Each field of each body, and each parameter of each query, is used, or refused by its name.

A request is sent without the part and with it: something that a user can read has to differ.
"""

import json
import re
from collections.abc import Mapping

import pytest
from client.serving import Answer, Json, Service
from harness.templates import one, template
from stoker.api import schemas
from stoker.api.handlers import events, resources, stack_list, stacks
from stoker.features.software import schemas as software

PLAIN = template({"r": one(value={"get_param": "p"})}, parameters={"p": {"type": "string", "default": "d"}})
OTHER = {**PLAIN, "description": "another one"}
NESTING = template({"n": {"type": "inner.yaml"}}, outputs={"o": {"value": {"get_resource": "n"}}})
INNER = {"inner.yaml": json.dumps(template({"inside": one(value="x")}))}
ADOPTED = {"template": OTHER, "resources": {}}
BREAKPOINT = {"environment": {"resource_registry": {"resources": {"r": {"hooks": "pre-create"}}}}}

GOAL: Mapping[str, Json] = {
    "template": {"template": OTHER},
    "template_url": {"template": None, "template_url": "http://127.0.0.1:1/nowhere"},
    "environment": {"environment": {"parameters": {"p": "e"}}},
    "environment_files": {"environment_files": ["e"], "files": {"e": '{"parameters": {"p": "f"}}'}},
    "files": {"files": {"unused": "x"}},
    "files_container": {"files_container": "c"},
    "parameters": {"parameters": {"p": "q"}},
}
OPTIONS: Mapping[str, Json] = {
    "disable_rollback": {"disable_rollback": False},
    "timeout_mins": {"timeout_mins": 7},
    "tags": {"tags": "red,blue"},
}
NEW: Mapping[str, Json] = {
    **GOAL,
    **OPTIONS,
    "stack_name": {"stack_name": "other"},
    "adopt_stack_data": {"adopt_stack_data": ADOPTED},
    "timeout": {"timeout": 8},
    "abort_on_breakpoint": {"abort_on_breakpoint": True, **BREAKPOINT},
}
CHANGE: Mapping[str, Json] = {
    **GOAL,
    **OPTIONS,
    "stack_name": {"stack_name": "renamed"},
    "converge": {"converge": "maybe"},
    "existing": {"existing": True, "template": None},
    "clear_parameters": {"clear_parameters": ["p"], "parameters": {"p": "z"}},
    "abort_on_breakpoint": {"abort_on_breakpoint": "maybe"},
}
CONFIG: Mapping[str, Json] = {
    "name": {"name": "n"},
    "group": {"group": "script"},
    "config": {"config": "echo"},
    "inputs": {"inputs": [{"name": "i"}]},
    "outputs": {"outputs": [{"name": "o"}]},
    "options": {"options": {"x": 1}},
}
DEPLOYMENT: Mapping[str, Json] = {
    "server_id": {"server_id": "another"},
    "config_id": {"config_id": "none"},
    "input_values": {"input_values": {"i": "1"}},
    "action": {"action": "UPDATE"},
    "status": {"status": "FAILED"},
    "status_reason": {"status_reason": "why"},
}
UPDATED: Mapping[str, Json] = {
    **{name: value for name, value in DEPLOYMENT.items() if name not in ("server_id", "input_values")},
    "input_values": {"input_values": {"i": "2"}},
    "output_values": {"output_values": {"o": "1"}},
}
WITHOUT_EFFECT: Mapping[tuple[str, str], str] = {
    ("update", "stack_name"): "a stack keeps its name, as the answer's header Warning says",
    ("patch", "stack_name"): "likewise",
    ("preview", "files"): "a file that nothing names is stored only",
    ("preview", "abort_on_breakpoint"): "a preview runs into no breakpoint; a wrong value is refused",
    ("validate", "files"): "as for a preview",
    ("validate", "disable_rollback"): "a validation makes nothing; a wrong value is refused",
    ("validate", "timeout_mins"): "likewise",
    ("validate", "tags"): "likewise",
    ("validate", "abort_on_breakpoint"): "likewise",
    (
        "deploy",
        "stack_user_project_id",
    ): "Heat's user who sends signals; theirs go to an address that is signed",
}
"""Operation and field -> why both are accepted although nothing differs."""
WRONG: Mapping[str, Json] = {
    "disable_rollback": "maybe",
    "abort_on_breakpoint": "maybe",
    "timeout_mins": "soon",
    "tags": "a,,b",
}
BODIES: Mapping[str, tuple[Json, Mapping[str, Json]]] = {
    "create": (schemas.CREATE, NEW),
    "preview": (schemas.CREATE, NEW),
    "validate": (schemas.VALIDATE, {**GOAL, **{name: {name: None} for name in WRONG}}),
    "update": (schemas.UPDATE, CHANGE),
    "patch": (schemas.UPDATE, {**CHANGE, "existing": {"existing": False}}),
    "configure": (software.NEW_CONFIG, CONFIG),
    "deploy": (software.NEW_DEPLOYMENT, {**DEPLOYMENT, "stack_user_project_id": {}}),
    "redeploy": (software.UPDATED_DEPLOYMENT, UPDATED),
    "snapshot": (schemas.SNAPSHOT, {"name": {"name": "n"}}),
    "mark": (
        schemas.MARK_UNHEALTHY,
        {
            "mark_unhealthy": {"mark_unhealthy": False},
            "resource_status_reason": {"resource_status_reason": "why"},
        },
    ),
}
"""Operation -> the schema of its body, and for each field a change of the body that shows its effect."""
TAKES_OTHERS = ("configure", "deploy", "redeploy")
"""Operations that ignore keys that they do not know, as in Heat: clients send back what they have read."""
_CHANGING = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z?|tenant\w+|req-[0-9a-f-]+"
)


class Project:
    """Sends requests in a project that holds nothing but what they make."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name

    def send(self, operation: str, change: Json) -> tuple[Answer, str]:
        """Return the answer, and all that a user can read after it, without ids and times."""
        answer = getattr(self, f"_{operation}")(change)
        readable = [answer.status, answer.body, *self._stacks()]
        return answer, _CHANGING.sub("…", json.dumps(readable))

    def call(self, method: str, path: str, body: Json) -> Answer:
        return self.service.call(method, f"/v1/{self.name}/{path}", body)

    def _stacks(self) -> list[Json]:
        listed = self.service.get(f"/v1/{self.name}/stacks")["stacks"]
        answers: list[Json] = []
        for item in listed:
            path = f"/v1/{self.name}/stacks/{item['stack_name']}/{item['id']}"
            self._settle(path)
            parts = ("", "/template", "/environment", "/files", "/resources")
            answers += [self.service.call("GET", f"{path}{part}").body for part in parts]
        return answers

    def _settle(self, path: str) -> None:
        stack = self.service.get(path)["stack"]
        if not stack.get("breakpoints"):
            self.service.settled(path)

    def _create(self, change: Json) -> Answer:
        return self.call("POST", "stacks", {"stack_name": "s", "template": PLAIN, **change})

    def _preview(self, change: Json) -> Answer:
        return self.call("POST", "stacks/preview", {"stack_name": "s", "template": PLAIN, **change})

    def _validate(self, change: Json) -> Answer:
        return self.call("POST", "validate", {"template": PLAIN, **change})

    def _created_path(self) -> str:
        path = self.service.created(self.name, "s", PLAIN, parameters={"p": "first"})
        return path.removeprefix(f"/v1/{self.name}/")

    def _update(self, change: Json) -> Answer:
        return self.call("PUT", self._created_path(), {"template": PLAIN, **change})

    def _patch(self, change: Json) -> Answer:
        return self.call("PATCH", self._created_path(), {"template": PLAIN, **change})

    def _configure(self, change: Json) -> Answer:
        return self.call("POST", "software_configs", change)

    def _deploy(self, change: Json) -> Answer:
        config = self._configure({"config": "x", "inputs": [{"name": "i"}]}).body["software_config"]["id"]
        return self.call("POST", "software_deployments", {"server_id": "s", "config_id": config, **change})

    def _redeploy(self, change: Json) -> Answer:
        deployment = self._deploy({}).body["software_deployment"]
        return self.call("PUT", f"software_deployments/{deployment['id']}", change)

    def _snapshot(self, change: Json) -> Answer:
        return self.call("POST", f"{self._created_path()}/snapshots", change)

    def _mark(self, change: Json) -> Answer:
        return self.call("PATCH", f"{self._created_path()}/resources/r", {"mark_unhealthy": True, **change})


CASES = [(operation, field) for operation, (_, fields) in BODIES.items() for field in fields]


@pytest.mark.parametrize("operation", BODIES)
def test_the_table_has_all_fields_and_others_are_refused_by_name(
    service: Service, tenant: str, operation: str
) -> None:
    schema, fields = BODIES[operation]
    assert set(fields) == set(schema["properties"])
    if operation in TAKES_OTHERS:
        return
    answer, _ = Project(service, tenant).send(operation, {"made_up": 1})
    assert answer.status == 400
    assert "made_up" in answer.error["message"]


@pytest.mark.parametrize(("operation", "field"), CASES)
def test_a_field_changes_something_or_is_refused_by_name(
    service: Service, tenant: str, operation: str, field: str
) -> None:
    change = BODIES[operation][1][field]
    other_fields = {name: value for name, value in change.items() if name != field and value is not None}
    if (operation, field) in WITHOUT_EFFECT:
        if field in WRONG:
            answer, _ = Project(service, tenant).send(operation, {field: WRONG[field]})
            assert answer.status == 400
            assert field.partition("_")[0].rstrip("s") in answer.error["message"]
        return
    _, before = Project(service, f"{tenant}a").send(operation, other_fields)
    answer, after = Project(service, f"{tenant}b").send(operation, change)
    assert before != after
    if answer.status == 400:
        assert field in answer.error["message"] or str(change[field]) in answer.error["message"]


@pytest.mark.parametrize("action", ["check", "suspend", "resume", "cancel_update", "cancel_without_rollback"])
def test_details_of_an_action_that_has_none_are_refused(service: Service, tenant: str, action: str) -> None:
    path = service.created(tenant, "s", PLAIN)
    answer = service.call("POST", f"{path}/actions", {action: {"resources": ["r"]}})
    assert answer.status == 400
    assert f"{action}: the action takes no details" in answer.error["message"]
    assert service.get(path)["stack"]["stack_status"] == "CREATE_COMPLETE"


# -- queries ---------------------------------------------------------------------------------------

NONE = "none-such"
FILTERS = (
    "id name stack_name action stack_action status stack_status stack_status_reason tenant username "
    "stack_user_project_id stack_owner owner_id parent tags tags_any tags-any"
)
LISTED: Mapping[str, str] = {
    **dict.fromkeys(FILTERS.split(), NONE),
    **dict.fromkeys(("not_tags", "not-tags", "not_tags_any", "not-tags-any"), "red"),
    **dict.fromkeys(("show_hidden", "show_deleted", "show_nested"), "true"),
    "limit": "1",
    "marker": "STACK_ID",
    "sort_keys": "stack_name&sort_dir=desc",
    "sort_dir": "asc",
}
EVENTS: Mapping[str, str] = {
    **dict.fromkeys(
        ("resource_action", "resource_status", "resource_name", "resource_type", "physical_resource_id"), NONE
    ),
    "uuid": NONE,
    "nested_depth": "2",
    "limit": "1",
    "marker": "EVENT_ID",
    "sort_keys": "resource_type",
    "sort_dir": "asc",
}
QUERIES: Mapping[str, Mapping[str, str]] = {
    "stacks": {**LISTED, "global_tenant": "true", "with_count": "true"},
    "stacks/detail": LISTED,
    "STACK": {"resolve_outputs": "false"},
    "STACK/resources": {
        **dict.fromkeys(("name", "type", "action", "id", "physical_resource_id", "status"), NONE),
        "nested_depth": "2",
        "with_detail": "true",
    },
    "STACK/resources/n": {"with_attr": NONE},
    "STACK/events": EVENTS,
    "STACK/resources/n/events": EVENTS,
    "STACK/snapshots": {"limit": "1", "marker": "SNAPSHOT_ID"},
    "software_configs": {"limit": "1", "marker": "CONFIG_ID", "global_tenant": "true"},
    "software_deployments": {"limit": "1", "marker": "DEPLOYMENT_ID", "server_id": NONE},
    "resource_types": {
        "name": "Random",
        "version": "2014.1",
        "support_status": "DEPRECATED",
        "with_description": "true",
    },
    "resource_types/OS::Heat::RandomString": {"with_description": "true"},
    "resource_types/OS::Heat::RandomString/template": {"template_type": "hot"},
    "template_versions/heat_template_version.2018-08-31/functions": {"with_condition_func": "true"},
}
"""Path of a GET -> a value of each parameter that shows its effect."""
DECLARED: Mapping[str, frozenset[str]] = {
    "stacks": frozenset(stack_list.INDEX_QUERY),
    "stacks/detail": stack_list.DETAIL_QUERY,
    "STACK": stacks.SHOW_QUERY,
    "STACK/resources": frozenset(resources.INDEX_QUERY),
    "STACK/resources/n": resources.SHOW_QUERY,
    "STACK/events": events.QUERY,
    "STACK/resources/n/events": events.QUERY,
}
SAME_EVENTS = "all events of one resource are of one stack, and of one type"
UNUSED: Mapping[tuple[str, str], str] = {
    ("stacks", "show_hidden"): "here the operator hides no tag; see test_installation_limits.py",
    ("stacks/detail", "show_hidden"): "likewise",
    ("STACK/resources/n/events", "nested_depth"): SAME_EVENTS,
    ("STACK/resources/n/events", "sort_keys"): SAME_EVENTS,
    ("STACK/resources/n/events", "resource_name"): SAME_EVENTS,
}
"""Path and parameter -> why nothing differs.  As in Heat, an unknown parameter of a query has no effect."""


@pytest.fixture(scope="module")
def filled(service: Service) -> Mapping[str, str]:
    """A project that has two of everything; return what placeholders of QUERIES stand for."""
    project = Project(service, "filled")
    prefix = "/v1/filled/"
    service.created("filled", "zebra", PLAIN, tags="red")
    service.created("filled", "other", PLAIN)
    deleted = service.created("filled", "gone", PLAIN)
    path = service.created("filled", "ant", NESTING, files=INNER, tags="blue")
    assert service.call("DELETE", deleted).status == 204
    service.settled(deleted)
    snapshot = project.call("POST", f"{path.removeprefix(prefix)}/snapshots", {})
    service.settled(path)
    project.call("POST", f"{path.removeprefix(prefix)}/snapshots", {})
    service.settled(path)
    deployments = [project.send("deploy", {})[0].body["software_deployment"] for _ in range(2)]
    return {
        "STACK_ID": path.rpartition("/")[2],
        "STACK": path.removeprefix(prefix),
        "EVENT_ID": service.get(f"{path}/resources/n/events")["events"][0]["id"],
        "SNAPSHOT_ID": snapshot.body["id"],
        "CONFIG_ID": deployments[0]["config_id"],
        "DEPLOYMENT_ID": deployments[0]["id"],
    }


@pytest.mark.parametrize("path", DECLARED)
def test_the_table_has_all_parameters(path: str) -> None:
    assert set(QUERIES[path]) == DECLARED[path]


@pytest.mark.parametrize(("path", "name"), [(path, name) for path in QUERIES for name in QUERIES[path]])
def test_a_parameter_changes_the_answer(
    service: Service, filled: Mapping[str, str], path: str, name: str
) -> None:
    if (path, name) in UNUSED:
        return
    query = f"{name}={QUERIES[path][name]}"
    for placeholder, value in filled.items():
        path = re.sub(rf"\b{placeholder}\b", value, path)
        query = query.replace(placeholder, value)
    plain, queried = (service.call("GET", f"/v1/filled/{address}") for address in (path, f"{path}?{query}"))
    assert plain.status == 200
    assert (queried.status, queried.body) != (plain.status, plain.body)
