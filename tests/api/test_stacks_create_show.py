"""Stacks are created, shown, looked up and deleted as with Heat's Orchestration API v1."""

import re

import pytest
from client.serving import Json, Service, fault
from harness.templates import chain, flat, one, template
from harness.waiting import wait_for

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PARAMETERS = {
    "size": {"type": "number", "default": 2},
    "secret": {"type": "string", "hidden": True},
    "names": {"type": "comma_delimited_list", "default": "a,b"},
}


def rich() -> Json:
    return template(
        {
            "a": one(value={"list_join": ["-", {"get_param": "names"}]}),
            "b": one(value={"get_param": "secret"}),
        },
        description="Two resources",
        parameters=PARAMETERS,
        outputs={
            "joined": {"value": {"get_attr": ["a", "output"]}, "description": "of the names"},
            "size": {"value": {"get_param": "size"}},
        },
    )


def test_a_create_answers_201_with_the_id_and_the_link_in_body_and_header(
    service: Service, tenant: str
) -> None:
    answer = service.call("POST", f"/v1/{tenant}/stacks", {"stack_name": "first", "template": flat(1)})
    assert answer.status == 201
    stack = answer.body["stack"]
    link = f"{service.url}/v1/{tenant}/stacks/first/{stack['id']}"
    assert stack == {"id": stack["id"], "links": [{"href": link, "rel": "self"}]}
    assert answer.headers["Location"] == link
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Openstack-Request-Id"].startswith("req-")


@pytest.mark.parametrize(("forwarded", "scheme"), [("https", "https"), ("http", "http"), ("ftp", "http")])
def test_links_have_the_scheme_of_the_proxy_that_ends_tls(
    service: Service, tenant: str, forwarded: str, scheme: str
) -> None:
    path = service.create(tenant, "proxied", flat(1))
    headers = {"X-Forwarded-Proto": forwarded, "X-Forwarded-Host": "evil.example.org"}
    answer = service.call("GET", f"/v1/{tenant}/stacks/proxied", headers=headers)
    assert answer.headers["Location"] == service.url.replace("http", scheme, 1) + path


def test_a_shown_stack_has_heats_fields(service: Service, tenant: str) -> None:
    path = service.created(
        tenant, "rich", rich(), parameters={"secret": "s3cret"}, tags="one,two", timeout_mins=7
    )
    stack = service.get(path)["stack"]
    stack_id = path.rsplit("/", 1)[1]
    assert ISO.fullmatch(stack.pop("creation_time"))
    assert stack.pop("outputs") == [
        {"output_key": "joined", "description": "of the names", "output_value": "a-b"},
        {"output_key": "size", "description": "No description given", "output_value": 2},
    ]
    assert stack == {
        "id": stack_id,
        "stack_name": "rich",
        "description": "Two resources",
        "template_description": "Two resources",
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "Stack CREATE completed successfully",
        "updated_time": None,
        "deletion_time": None,
        "links": [{"href": service.url + path, "rel": "self"}],
        "parameters": {
            "OS::stack_name": "rich",
            "OS::stack_id": stack_id,
            "OS::project_id": tenant,
            "size": "2",
            "secret": "******",
            "names": "a,b",
        },
        "timeout_mins": 7,
        "disable_rollback": True,
        "parent": None,
        "stack_owner": None,
        "stack_user_project_id": tenant,
        "capabilities": [],
        "notification_topics": [],
        "tags": ["one", "two"],
    }


def test_a_stack_without_description_timeout_and_tags_shows_heats_defaults(
    service: Service, tenant: str
) -> None:
    stack = service.get(service.created(tenant, "plain", flat(1)))["stack"]
    assert stack["description"] == stack["template_description"] == "No description"
    assert (stack["timeout_mins"], stack["tags"]) == (None, [])
    # As in Heat a list shows null in its place.
    assert service.get(f"/v1/{tenant}/stacks")["stacks"][0]["tags"] is None


def test_outputs_are_omitted_where_they_are_not_to_be_resolved(service: Service, tenant: str) -> None:
    path = service.created(tenant, "quick", chain(2))
    assert "outputs" not in service.get(f"{path}?resolve_outputs=False")["stack"]
    assert service.get(f"{path}?resolve_outputs=True")["stack"]["outputs"][0]["output_value"] == "x"


@pytest.mark.parametrize("value", [0, "0", "", None])
def test_a_timeout_of_nothing_is_the_services_default(service: Service, tenant: str, value: Json) -> None:
    path = service.create(tenant, "untimed", flat(1), timeout_mins=value)
    assert service.get(path)["stack"]["timeout_mins"] is None


def test_an_owner_and_a_rollback_are_kept(service: Service, tenant: str) -> None:
    body = {"stack_name": "owned", "template": flat(1), "disable_rollback": "false"}
    service.call("POST", f"/v1/{tenant}/stacks", body, headers={"X-Auth-User": "ann"})
    (stack,) = service.get(f"/v1/{tenant}/stacks/detail")["stacks"]
    assert (stack["stack_owner"], stack["disable_rollback"]) == ("ann", False)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_bare_name_or_id_is_redirected_to_the_full_path_with_its_query(
    service: Service, tenant: str, method: str
) -> None:
    path = service.create(tenant, "named", flat(1))
    for key in ("named", path.rsplit("/", 1)[1]):
        answer = service.call(method, f"/v1/{tenant}/stacks/{key}?resolve_outputs=False")
        assert (answer.status, answer.body["code"]) == (302, "302 Found")
        assert answer.headers["Location"] == f"{service.url}{path}?resolve_outputs=False"
        assert answer.body["message"].endswith(answer.headers["Location"])


@pytest.mark.parametrize("below", ["resources", "events", "template", "environment", "files", "outputs"])
def test_paths_below_a_bare_name_are_redirected(service: Service, tenant: str, below: str) -> None:
    path = service.create(tenant, "named", flat(1))
    answer = service.call("GET", f"/v1/{tenant}/stacks/named/{below}")
    assert answer.status == 302
    assert answer.headers["Location"] == f"{service.url}{path}/{below}"
    assert service.call("GET", answer.headers["Location"]).status == 200


def test_a_post_below_a_bare_name_is_redirected_too(service: Service, tenant: str) -> None:
    path = service.create(tenant, "named", flat(1))
    answer = service.call("POST", f"/v1/{tenant}/stacks/named/actions", {"suspend": None})
    assert (answer.status, answer.headers["Location"]) == (302, f"{service.url}{path}/actions")


def test_a_deleted_stack_is_found_by_its_id_only(service: Service, tenant: str) -> None:
    path = service.created(tenant, "gone", flat(2))
    answer = service.call("DELETE", path)
    assert (answer.status, answer.body) == (204, None)
    stack = service.settled(path)
    assert stack["stack_status"] == "DELETE_COMPLETE"
    assert ISO.fullmatch(stack["deletion_time"])
    assert "outputs" not in stack
    assert fault(service.call("GET", f"/v1/{tenant}/stacks/gone")) == (404, "EntityNotFound")
    assert service.call("GET", f"/v1/{tenant}/stacks/{path.rsplit('/', 1)[1]}").status == 302
    assert fault(service.call("DELETE", path)) == (404, "EntityNotFound")
    assert service.get(f"{path}/resources") == {"resources": []}


@pytest.mark.parametrize(
    ("method", "below", "body"),
    [
        ("PUT", "", {"template": flat(1)}),
        ("PATCH", "", {"parameters": {}}),
        *(("POST", "/actions", {action: None}) for action in ("suspend", "resume", "check", "cancel_update")),
    ],
)
def test_a_deleted_stack_can_be_changed_no_more(
    service: Service, tenant: str, method: str, below: str, body: Json
) -> None:
    path = service.created(tenant, "gone", flat(1))
    service.call("DELETE", path)
    service.settled(path)
    assert fault(service.call(method, path + below, body)) == (404, "EntityNotFound")


@pytest.mark.parametrize("actions", [["suspend"], ["suspend", "resume"]])
def test_suspending_or_resuming_twice_changes_nothing(
    service: Service, tenant: str, actions: list[str]
) -> None:
    path = service.created(tenant, "still", flat(1))
    for action in actions:
        service.call("POST", f"{path}/actions", {action: None})
        service.settled(path)
    events = service.get(f"{path}/events")
    assert service.call("POST", f"{path}/actions", {actions[-1]: None}).status == 200
    assert service.settled(path)["stack_status"] == f"{actions[-1].upper()}_COMPLETE"
    assert service.get(f"{path}/events") == events


def test_a_name_is_free_again_after_the_deletion(service: Service, tenant: str) -> None:
    path = service.created(tenant, "again", flat(1))
    body = {"stack_name": "again", "template": flat(1)}
    refused = service.call("POST", f"/v1/{tenant}/stacks", body)
    assert fault(refused) == (409, "StackExists")
    assert refused.error["message"] == "The Stack (again) already exists."
    service.call("DELETE", path)
    service.settled(path)
    assert service.call("POST", f"/v1/{tenant}/stacks", body).status == 201


def test_two_projects_may_use_one_name_and_do_not_see_each_others_stacks(
    service: Service, tenant: str
) -> None:
    other_tenant = f"{tenant}-other"
    first = service.create(tenant, "shared", flat(1))
    second = service.create(other_tenant, "shared", flat(2))
    assert len(service.get(f"/v1/{tenant}/stacks")["stacks"]) == 1
    stolen = second.replace(f"/{other_tenant}/", f"/{tenant}/")
    for method, below in (("GET", ""), ("GET", "/resources"), ("GET", "/events"), ("DELETE", "")):
        assert fault(service.call(method, stolen + below)) == (404, "EntityNotFound")
    assert fault(service.call("GET", f"/v1/{tenant}/stacks/{second.rsplit('/', 1)[1]}"))[0] == 404
    assert service.settled(second)["stack_status"] == "CREATE_COMPLETE", "nobody else deleted it"
    assert service.settled(first)["stack_status"] == "CREATE_COMPLETE"


def test_a_project_header_must_name_the_project_of_the_path(service: Service, tenant: str) -> None:
    path = f"/v1/{tenant}/stacks"
    assert service.call("GET", path, headers={"X-Project-Id": tenant}).status == 200
    answer = service.call("GET", path, headers={"X-Project-Id": "another"})
    assert fault(answer) == (403, "Forbidden")
    assert "another" in answer.error["message"]


def test_a_stack_can_be_deleted_during_its_creation(service: Service, tenant: str) -> None:
    held = {"resource_registry": {"resources": {"r0": {"hooks": "pre-delete"}}}}
    path = service.create(tenant, "hasty", flat(3, action_wait_secs={"create": 3600}), environment=held)
    wait_for(lambda: service.get(f"{path}/resources")["resources"][0]["physical_resource_id"] != "")
    assert service.call("DELETE", path).status == 204
    assert service.call("DELETE", path).status == 204, "a second request changes nothing"
    assert service.get(path)["stack"]["stack_status"] == "DELETE_IN_PROGRESS"
    wait_for(lambda: "breakpoints" in service.get(path)["stack"])
    assert service.call("POST", f"{path}/actions", {"continue": None}).status == 200
    # The creation, which takes an hour, is not waited for.
    assert service.settled(path)["stack_status"] == "DELETE_COMPLETE"


def test_an_unknown_action_is_an_error(service: Service, tenant: str) -> None:
    path = service.created(tenant, "acted", flat(1)) + "/actions"
    for body, status, message in (
        ({}, 400, "No action specified"),
        ({"check": None, "cancel_update": None}, 400, "Multiple actions specified"),
        ({"explode": None}, 400, "Invalid action explode specified; known: cancel_update, "),
        ([], 400, "object"),
        ({"resume": None}, 400, "only a suspended stack is resumed"),
    ):
        answer = service.call("POST", path, body)
        assert answer.status == status
        assert message in answer.body["error"]["message"]


def test_drift_that_nobody_observes_says_so(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"a": one()}))
    drift = service.get(f"{path}/drift")["drift"]
    assert drift["drift_status"] == "NOT_CHECKED"
    [reason] = drift["unknown"]
    assert "has not set [drift] enabled" in reason
