"""Nested stacks by the name under which the list of stacks shows them, and by the links that lead there."""

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
    found = service.get(f"/v1/{tenant}/stacks?show_nested=true")["stacks"]
    return [stack["stack_name"] for stack in found if stack["parent"]]


def test_a_nested_stack_is_found_by_its_name(service: Service, tenant: str) -> None:
    service.made(tenant, "tree", outer("one"))
    (name,) = names(service, tenant)
    for below in ("", "/resources", "/events", "/template"):
        answer = service.call("GET", f"/v1/{tenant}/stacks/{name}{below}")
        assert answer.status == 302, answer
        assert f"/stacks/{name}/" in answer.headers["Location"]
        assert service.call("GET", answer.headers["Location"]).status == 200
    assert fault(service.call("GET", f"/v1/not-{tenant}/stacks/{name}")) == (404, "EntityNotFound")


def test_the_link_to_a_nested_stack_leads_there_after_an_update_too(service: Service, tenant: str) -> None:
    path = service.made(tenant, "tree", outer("one"))
    for word in ("two", "three"):
        assert service.call("PUT", path, {"template": outer(word)}).status == 202
        assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    (child,) = service.get(f"{path}/resources")["resources"]
    (href,) = [link["href"] for link in child["links"] if link["rel"] == "nested"]
    assert service.get(href)["stack"]["stack_name"] == names(service, tenant)[0]


def test_a_top_level_stack_goes_before_a_nested_one_of_its_name(service: Service, tenant: str) -> None:
    service.made(tenant, "tree", outer("one"))
    (name,) = names(service, tenant)
    path = service.made(tenant, name, flat(1))
    assert service.call("GET", f"/v1/{tenant}/stacks/{name}").headers["Location"].endswith(path)
