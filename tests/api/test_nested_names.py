"""Nested stacks by the name under which the list of stacks shows them, and by the links that lead there."""

import json

from client.serving import Service, fault
from harness.templates import flat

INNER = """
heat_template_version: 2018-08-31
parameters: {word: {type: string, default: none}}
resources: {r: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}}
"""


def outer(word: str) -> dict[str, object]:
    properties = {"template": INNER, "parameters": {"word": word}}
    child = {"type": "OS::Heat::Stack", "properties": properties}
    return {"heat_template_version": "2018-08-31", "resources": {"child": child}}


def names(service: Service, tenant: str) -> list[str]:
    stacks = service.get(f"/v1/{tenant}/stacks?show_nested=true")["stacks"]
    return [stack["stack_name"] for stack in stacks if stack["parent"]]


def test_a_nested_stack_is_found_by_its_name(service: Service, tenant: str) -> None:
    service.created(tenant, "tree", outer("one"))
    (name,) = names(service, tenant)
    for below in ("", "/resources", "/events", "/template"):
        answer = service.call("GET", f"/v1/{tenant}/stacks/{name}{below}")
        assert answer.status == 302, answer
        assert f"/stacks/{name}/" in answer.headers["Location"]
        assert service.call("GET", answer.headers["Location"]).status == 200
    assert fault(service.call("GET", f"/v1/not-{tenant}/stacks/{name}")) == (404, "EntityNotFound")


def test_the_link_to_a_nested_stack_is_valid_after_an_update_too(service: Service, tenant: str) -> None:
    path = service.created(tenant, "tree", outer("one"))
    for word in ("two", "three"):
        assert service.call("PUT", path, {"template": outer(word)}).status == 202
        assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    (child,) = service.get(f"{path}/resources")["resources"]
    (href,) = [link["href"] for link in child["links"] if link["rel"] == "nested"]
    assert service.get(href)["stack"]["stack_name"] == names(service, tenant)[0]


def test_a_top_level_stack_has_precedence_over_a_nested_one(service: Service, tenant: str) -> None:
    service.created(tenant, "tree", outer("one"))
    (name,) = names(service, tenant)
    path = service.created(tenant, name, flat(1))
    assert service.call("GET", f"/v1/{tenant}/stacks/{name}").headers["Location"].endswith(path)


def test_the_link_to_an_adopted_nested_stack_is_valid(service: Service, tenant: str) -> None:
    path = service.created(tenant, "tree", outer("one"))
    document = service.get(f"{path}/export")
    body = {"stack_name": "again", "adopt_stack_data": json.dumps(document)}
    answer = service.call("POST", f"/v1/{tenant}/stacks", body)
    assert answer.status == 201, answer
    adopted = f"/v1/{tenant}/stacks/again/{answer.body['stack']['id']}"
    assert service.settled(adopted)["stack_status"] == "ADOPT_COMPLETE"
    (child,) = service.get(f"{adopted}/resources")["resources"]
    (href,) = [link["href"] for link in child["links"] if link["rel"] == "nested"]
    assert service.get(href)["stack"]["id"] == child["physical_resource_id"]


def test_a_nested_stack_names_its_owner_and_has_the_timeout_of_its_root(
    service: Service, tenant: str
) -> None:
    path = service.created(tenant, "tree", outer("one"), timeout_mins=7)
    (child,) = service.get(f"{path}/resources")["resources"]
    assert "parent_resource" not in child
    (href,) = [link["href"] for link in child["links"] if link["rel"] == "nested"]
    (inside,) = service.get(f"{href}/resources")["resources"]
    assert inside["parent_resource"] == "child"
    assert service.get(f"{href}/resources/r")["resource"]["parent_resource"] == "child"
    resources = service.get(f"{path}/resources?nested_depth=1")["resources"]
    assert {item["resource_name"]: item.get("parent_resource") for item in resources} == {
        "child": None,
        "r": "child",
    }
    changed = service.call("PUT", f"{path}/preview?show_nested=true", {"template": outer("two")})
    updated = changed.body["resource_changes"]["updated"]
    assert {item["resource_name"]: item.get("parent_resource") for item in updated} == {
        "child": None,
        "r": "child",
    }
    assert service.get(href)["stack"]["timeout_mins"] == 7
    detailed = service.get(f"/v1/{tenant}/stacks/detail?show_nested=true")["stacks"]
    assert [stack["timeout_mins"] for stack in detailed] == [7, 7]
