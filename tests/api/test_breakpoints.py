"""Breakpoints of the API beyond Heat's: requests, views and refusals."""

import typing

import pytest
from client.serving import Service, fault
from harness.waiting import wait_for

Json = typing.Any
TEST = "OS::Heat::TestResource"
CHAIN = {
    "heat_template_version": "2018-08-31",
    "resources": {"a": {"type": TEST}, "b": {"type": TEST, "depends_on": "a"}, "c": {"type": TEST}},
}
HOOKS = {"resource_registry": {"resources": {"b": {"hooks": {"pre-create": {"timeout": 3600}}}}}}


@pytest.fixture
def held(service: Service, tenant: str) -> str:
    path = service.create(tenant, "s", CHAIN, environment=HOOKS)
    done = {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE", "c": "CREATE_COMPLETE"}
    wait_for(lambda: states(service, path) == done)
    return path


def states(service: Service, path: str) -> dict[str, str]:
    resources = service.get(f"{path}/resources")["resources"]
    return {item["resource_name"]: item["resource_status"] for item in resources}


def test_the_stack_and_the_resource_show_a_breakpoint(service: Service, held: str, tenant: str) -> None:
    wait_for(lambda: "breakpoints" in service.get(held)["stack"])
    stack = service.get(held)["stack"]
    [item] = stack["breakpoints"]
    assert (item["resource_name"], item["hook"], item["resource_type"]) == ("b", "pre-create", TEST)
    assert item["until"].endswith("Z")
    [listed] = service.get(f"/v1/{tenant}/stacks")["stacks"]
    assert listed["stack_status_reason"] == "CREATE paused at breakpoint: pre-create on b"
    resource = service.get(f"{held}/resources/b")["resource"]
    assert (resource["breakpoint"], resource["resource_status"]) == ("pre-create", "INIT_COMPLETE")
    assert resource["resource_status_reason"] == "CREATE paused until Hook pre-create is cleared"
    [item] = [item for item in service.get(f"{held}/resources")["resources"] if item["resource_name"] == "b"]
    assert item["resource_status_reason"] == "CREATE paused until Hook pre-create is cleared"
    [event] = service.get(f"{held}/resources/b/events")["events"]
    assert event["resource_status_reason"] == "CREATE paused until Hook pre-create is cleared"
    answer = service.call("POST", f"{held}/actions", {"continue": None})
    assert (answer.status, [item["resource_name"] for item in answer.body["cleared"]]) == (200, ["b"])
    assert service.settled(held)["stack_status"] == "CREATE_COMPLETE"
    assert "breakpoints" not in service.get(held)["stack"]
    assert "breakpoint" not in service.get(f"{held}/resources/b")["resource"]


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ({"continue": {"resources": ["x"]}}, "InvalidBreakPointHook", 'No resource "x" of stack s is held'),
        (
            {"step": {"hook": "post-create"}},
            "InvalidBreakPointHook",
            "Nothing of stack s is held at post-create",
        ),
        ({"continue": {"hook": "pre-cook"}}, "InvalidBreakPointHook", '"pre-cook" is not one of: pre-create'),
        ({"continue": {"resources": []}}, "HTTPBadRequest", "continue.resources"),
        ({"continue": {"resources": "b"}}, "HTTPBadRequest", 'continue.resources: "b" is not of type array'),
        (
            {"continue": {"resources": ["b"] * 1001}},
            "HTTPBadRequest",
            "continue.resources: 1001 items are above the limit of 1000",
        ),
        ({"step": True}, "HTTPBadRequest", "step: true is not of type object or null"),
        ({"step": {"all": True}}, "HTTPBadRequest", "known: hook, resources"),
    ],
)
def test_a_wrong_request_to_continue_is_refused_and_changes_nothing(
    service: Service, held: str, body: Json, kind: str, text: str
) -> None:
    answer = service.call("POST", f"{held}/actions", body)
    assert fault(answer) == (400, kind)
    assert text in answer.error["message"]
    assert states(service, held)["b"] == "INIT_COMPLETE"


@pytest.mark.parametrize(
    ("resource", "details", "status", "text"),
    [
        (
            "a",
            {"unset_hook": "pre-create"},
            400,
            'The "pre-create" hook is not defined on TestResource "a" [',
        ),
        (
            "b",
            {"unset_hook": "post-create"},
            400,
            'The "post-create" hook is not defined on TestResource "b"',
        ),
        ("b", {"unset_hook": "pre-cook"}, 400, 'Invalid hook type "pre-cook" for TestResource "b"'),
        ("b", {"unset_hook": None}, 400, "unset_hook must be the name of a hook"),
        ("x", {"unset_hook": "pre-create"}, 404, "The Resource (x) could not be found"),
    ],
)
def test_a_wrong_signal_clears_nothing(
    service: Service, held: str, resource: str, details: Json, status: int, text: str
) -> None:
    answer = service.call("POST", f"{held}/resources/{resource}/signal", details)
    assert answer.status == status
    assert text in answer.error["message"]
    assert states(service, held)["b"] == "INIT_COMPLETE"


def test_the_stacks_flag_ends_its_action_and_an_update_completes_it(service: Service, tenant: str) -> None:
    path = service.create(
        tenant, "s", CHAIN, environment=HOOKS, abort_on_breakpoint=True, disable_rollback=False
    )
    stack = service.settled(path)
    assert (stack["stack_status"], stack["stack_status_reason"], stack["abort_on_breakpoint"]) == (
        "CREATE_FAILED",
        "CREATE aborted due to breakpoint on resource b",
        True,
    )
    body = {"template": CHAIN, "abort_on_breakpoint": False}
    assert service.call("PUT", path, body).status == 202
    stack = service.settled(path)
    assert (stack["stack_status"], "abort_on_breakpoint" in stack) == ("UPDATE_COMPLETE", False)
    refused = service.call("PUT", path, {**body, "abort_on_breakpoint": "perhaps"})
    assert "acceptable values are: true, false" in refused.error["message"]


def test_another_project_cannot_continue_it(service: Service, held: str, tenant: str) -> None:
    other_path = held.replace(f"/{tenant}/", "/somebody/")
    assert service.call("POST", f"{other_path}/actions", {"continue": None}).status == 404
    assert (
        service.call("POST", f"{other_path}/resources/b/signal", {"unset_hook": "pre-create"}).status == 404
    )
    assert states(service, held)["b"] == "INIT_COMPLETE"
