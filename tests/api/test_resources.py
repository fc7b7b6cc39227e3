"""Resources of a stack are listed, shown, signalled and marked as with Heat."""

import json
import re
import urllib.parse

import pytest
from client.serving import Json, Service, fault
from harness.templates import one, template
from harness.waiting import wait_for
from stoker.sealing.sealer import Sealer

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(scope="module")
def path(service: Service) -> str:
    resources = {
        "base": {**one(value="x"), "metadata": {"role": "base", "list": [1, 2]}, "description": "below"},
        "top": one(value={"get_attr": ["base", "output"]}),
        "odd name, 100%": {"type": "OS::Heat::RandomString", "properties": {"length": 5}},
        "none": {"type": "OS::Heat::None"},
    }
    return service.created("resources", "four", template(resources))


def names(service: Service, path: str, **query: Json) -> set[str]:
    resources = service.get(f"{path}/resources?{urllib.parse.urlencode(query, doseq=True)}")["resources"]
    return {item["resource_name"] for item in resources}


def test_a_listed_resource_has_heats_fields(service: Service, path: str) -> None:
    (item,) = service.get(f"{path}/resources?name=base")["resources"]
    assert ISO.fullmatch(item.pop("creation_time"))
    assert ISO.fullmatch(item.pop("updated_time"))
    assert item.pop("physical_resource_id").startswith("four-base-")
    assert item == {
        "resource_name": "base",
        "logical_resource_id": "base",
        "resource_type": "OS::Heat::TestResource",
        "resource_status": "CREATE_COMPLETE",
        "resource_status_reason": "state changed",
        "required_by": ["top"],
        "links": [
            {"href": f"{service.url}{path}/resources/base", "rel": "self"},
            {"href": service.url + path, "rel": "stack"},
        ],
    }


def test_a_shown_resource_also_has_its_attributes_and_description(service: Service, path: str) -> None:
    item = service.get(f"{path}/resources/base?with_attr=output&with_attr=unheard")["resource"]
    assert item["attributes"] == {"output": "x", "unheard": None}
    assert item["description"] == "below"
    assert item["properties"]["value"] == "x"
    (listed,) = service.get(f"{path}/resources?name=base&with_detail=True")["resources"]
    assert listed["attributes"] == {"output": "x"}
    assert "attributes" not in service.get(f"{path}/resources?name=base")["resources"][0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {"base", "top", "odd name, 100%", "none"}),
        ({"name": "top"}, {"top"}),
        ({"name": ["top", "base"]}, {"top", "base"}),
        ({"name": "odd name, 100%"}, {"odd name, 100%"}),
        ({"type": "OS::Heat::TestResource"}, {"base", "top"}),
        ({"status": "COMPLETE", "type": "OS::Heat::None"}, {"none"}),
        ({"status": "CREATE_COMPLETE", "name": "top"}, {"top"}),
        ({"status": "FAILED"}, set()),
        ({"action": "CREATE", "name": "top"}, {"top"}),
        ({"action": "DELETE"}, set()),
        ({"physical_resource_id": "nothing"}, set()),
        ({"nested_depth": 3, "name": "top"}, {"top"}),
    ],
)
def test_filters(service: Service, path: str, query: Json, expected: set[str]) -> None:
    assert names(service, path, **query) == expected


def test_a_resource_is_found_by_its_physical_id(service: Service, path: str) -> None:
    physical = service.get(f"{path}/resources/top")["resource"]["physical_resource_id"]
    assert names(service, path, physical_resource_id=physical) == {"top"}


def test_a_name_that_needs_quoting_is_reached_by_its_own_link(service: Service, path: str) -> None:
    (item,) = service.get(f"{path}/resources?type=OS::Heat::RandomString")["resources"]
    link = item["links"][0]["href"]
    assert link.endswith("/resources/odd%20name%2C%20100%25")
    assert service.get(link)["resource"]["resource_name"] == "odd name, 100%"


def test_a_list_of_a_tree_names_the_stack(service: Service, path: str) -> None:
    resources = service.get(f"{path}/resources?nested_depth=1")["resources"]
    assert {item["stack_name"] for item in resources} == {"four"}


def test_metadata(service: Service, path: str) -> None:
    assert service.get(f"{path}/resources/base/metadata") == {"metadata": {"role": "base", "list": [1, 2]}}
    assert service.get(f"{path}/resources/top/metadata") == {"metadata": {}}


@pytest.mark.parametrize(
    ("method", "below"),
    [("GET", ""), ("GET", "/metadata"), ("POST", "/signal"), ("PATCH", ""), ("GET", "/events")],
)
def test_an_unknown_resource_is_not_found(service: Service, path: str, method: str, below: str) -> None:
    answer = service.call(method, f"{path}/resources/missing{below}", {"mark_unhealthy": True})
    assert answer.status == 404
    assert "missing" in answer.error["message"]
    if below != "/events":
        message = "The Resource (missing) could not be found in Stack four."
        assert (answer.error["type"], answer.error["message"]) == ("ResourceNotFound", message)


def waiting(service: Service, tenant: str) -> str:
    resources = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 3600, "count": 2},
        },
    }
    path = service.create(
        tenant, "waiting", template(resources, outputs={"data": {"value": {"get_attr": ["wait", "data"]}}})
    )
    wait_for(lambda: status(service, path, "wait") == "CREATE_IN_PROGRESS")
    return path


def status(service: Service, path: str, name: str) -> str:
    resource_status: str = service.get(f"{path}/resources/{name}")["resource"]["resource_status"]
    return resource_status


def test_signals_end_a_wait_and_are_stored_as_metadata_and_events(service: Service, tenant: str) -> None:
    path = waiting(service, tenant)
    signal = f"{path}/resources/handle/signal"
    assert service.call("POST", signal, {"id": "1", "data": "one", "reason": "first"}).status == 200
    assert service.call("POST", signal, {"id": "2", "data": "two"}).status == 200
    stack = service.settled(path)
    assert stack["outputs"][0]["output_value"] == '{"1": "one", "2": "two"}'
    metadata = service.get(f"{path}/resources/handle/metadata")["metadata"]
    assert metadata["1"] == {"data": "one", "reason": "first", "status": "SUCCESS"}
    reasons = [
        item["resource_status_reason"]
        for item in service.get(f"{path}/resources/handle/events?sort_dir=asc")["events"]
        if item["resource_status"] == "SIGNAL_COMPLETE"
    ]
    assert reasons[0] == "status:SUCCESS reason:first"
    assert len(reasons) == 2


def test_a_suspended_resource_takes_no_signal(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", template({"handle": {"type": "OS::Heat::WaitConditionHandle"}}))
    assert service.call("POST", f"{path}/actions", {"suspend": None}).status == 200
    service.settled(path)
    answer = service.call("POST", f"{path}/resources/handle/signal", {"id": "1"})
    assert fault(answer) == (400, "NotSupported")
    assert "Signal resource during SUSPEND is not supported" in answer.error["message"]
    newest = service.get(f"{path}/resources/handle/events?limit=1")["events"][0]
    assert newest["resource_status_reason"] == "Cannot signal resource during SUSPEND"
    assert service.call("POST", f"{path}/actions", {"resume": None}).status == 200
    service.settled(path)
    assert service.call("POST", f"{path}/resources/handle/signal", {"id": "1"}).status == 200


def test_a_resource_that_is_not_created_yet_takes_no_signal(service: Service, tenant: str) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle", "depends_on": "slow"}
    slow = one(action_wait_secs={"create": 3600})
    path = service.create(tenant, "early", template({"slow": slow, "handle": handle}))
    answer = service.call("POST", f"{path}/resources/handle/signal", {"id": "1"})
    assert fault(answer) == (404, "ResourceNotAvailable")
    assert "handle" in answer.error["message"]
    service.call("DELETE", path)


def test_a_signal_of_failure_fails_the_stack(service: Service, tenant: str) -> None:
    path = waiting(service, tenant)
    service.call("POST", f"{path}/resources/handle/signal", {"status": "FAILURE", "reason": "no luck"})
    stack = service.settled(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    assert "no luck" in stack["stack_status_reason"]


def test_a_signal_to_a_resource_that_takes_none_is_an_error(service: Service, path: str) -> None:
    answer = service.call("POST", f"{path}/resources/top/signal")
    assert fault(answer) == (400, "ResourceActionNotSupported")
    assert answer.error["message"].startswith("signal is not supported for resource. Resource top of type ")


def test_a_resource_is_marked_unhealthy_and_healthy_again(service: Service, tenant: str) -> None:
    path = service.created(tenant, "health", template({"r": one()}))
    url = f"{path}/resources/r"
    assert service.call("PATCH", url, {"mark_unhealthy": False}).status == 200
    assert status(service, path, "r") == "CREATE_COMPLETE", "a sound resource stays as it is"
    body = {"mark_unhealthy": True, "resource_status_reason": "it smells"}
    assert service.call("PATCH", url, body).status == 200
    item = service.get(url)["resource"]
    assert (item["resource_status"], item["resource_status_reason"]) == ("CHECK_FAILED", "it smells")
    physical = f"{path}/resources/{item['physical_resource_id']}"
    assert service.call("PATCH", physical, {"mark_unhealthy": "false"}).status == 200
    item = service.get(url)["resource"]
    assert item["resource_status"] == "CHECK_COMPLETE"
    assert item["resource_status_reason"] == "state changed by resource_mark_unhealthy api"
    statuses = [event["resource_status"] for event in service.get(f"{url}/events?sort_dir=asc")["events"]]
    assert statuses[-2:] == ["CHECK_FAILED", "CHECK_COMPLETE"]


def test_a_physical_id_of_several_resources_names_none_of_them(service: Service, tenant: str) -> None:
    external = {"type": "OS::Heat::TestResource", "external_id": "same"}
    path = service.created(tenant, "same", template({"a": external, "b": external}))
    ids = {item["physical_resource_id"] for item in service.get(f"{path}/resources")["resources"]}
    assert ids == {"same"}
    answer = service.call("PATCH", f"{path}/resources/same", {"mark_unhealthy": True})
    assert fault(answer) == (400, "PhysicalResourceIDAmbiguity")
    assert answer.error["message"] == "Multiple resources were found with the physical ID (same)."


def test_a_resource_in_progress_cannot_be_marked(service: Service, tenant: str) -> None:
    path = waiting(service, tenant)
    answer = service.call("PATCH", f"{path}/resources/wait", {"mark_unhealthy": True})
    assert fault(answer) == (409, "ActionInProgress")
    assert status(service, path, "wait") == "CREATE_IN_PROGRESS"
    service.call("DELETE", path)


def stolen(service: Service) -> Json:
    """Return a value of a user who has a token from a dump of another project's rows."""
    token = Sealer([service.key]).of_stack("victim", "root").seal("the victim's secret")
    return {"$fn": "sealed", "args": [token]}


def test_metadata_is_in_clear_for_guests_and_masked_elsewhere(service: Service, tenant: str) -> None:
    parameters = {"word": {"type": "string", "hidden": True}}
    resources = {"r": {**one(), "metadata": {"word": {"get_param": "word"}}}}
    path = service.created(
        tenant, "hidden", template(resources, parameters=parameters), parameters={"word": "W"}
    )
    assert service.get(f"{path}/resources/r/metadata") == {"metadata": {"word": "W"}}
    created = service.call("POST", f"{path}/snapshots", {}).body
    service.settled(path)
    snapshot = service.get(f"{path}/snapshots/{created['id']}")["snapshot"]
    assert snapshot["id"] == created["id"]
    assert snapshot["data"]["resources"]["r"]["metadata"] == {"word": "******"}


def test_a_stolen_token_opens_nothing_by_any_way_in(service: Service, tenant: str) -> None:
    token = stolen(service)
    sections = {
        "parameters": {"p": {"type": "json"}},
        "outputs": {"v": {"value": {"get_attr": ["v", "value"]}}, "p": {"value": {"get_param": "p"}}},
    }
    resources = {
        "v": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "handle": {"type": "OS::Heat::WaitConditionHandle", "metadata": {"m": {"get_attr": ["v", "value"]}}},
    }
    path = service.created(tenant, "thief", template(resources, **sections), parameters={"p": {"t": token}})
    for data in (token, {"$fn": "yaql", "args": [{"expression": "range(0, 1000000000).len()", "data": {}}]}):
        assert service.call("POST", f"{path}/resources/handle/signal", {"data": data}).status == 200
    metadata = service.get(f"{path}/resources/handle/metadata")["metadata"]
    assert (metadata["m"], metadata["2"]["data"]) == ({"t": token}, token)
    outputs = service.get(path)["stack"]["outputs"]
    assert {item["output_key"]: item["output_value"] for item in outputs} == {
        "v": {"t": token},
        "p": {"t": token},
    }
    assert service.call("POST", f"{path}/snapshots", {}).status == 200
    service.settled(path)
    answers = [service.call("GET", f"{path}/{part}") for part in ("snapshots", "export", "environment")]
    answers.append(service.call("DELETE", f"{path}/abandon"))
    assert [answer.status for answer in answers] == [200] * 4
    assert "the victim's secret" not in str([answer.body for answer in answers])
    adopted = {"stack_name": "again", "adopt_stack_data": json.dumps(answers[-1].body)}
    again = service.call("POST", f"/v1/{tenant}/stacks", {**adopted, "timeout_mins": 5})
    assert again.status == 201, again.body


def test_an_adopted_random_string_has_no_value(service: Service, tenant: str) -> None:
    document = template(
        {"r": {"type": "OS::Heat::RandomString", "external_id": "theirs"}},
        outputs={"value": {"value": {"get_resource": "r"}}},
    )
    stack = service.get(service.created(tenant, "s", document))["stack"]
    assert (stack["stack_status"], stack["outputs"][0]["output_value"]) == ("CREATE_COMPLETE", None)
