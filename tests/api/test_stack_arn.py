"""Stacks by their ARN, Heat's name for them in the form of Amazon's."""

import urllib.parse

import pytest
from client.serving import Service, fault
from harness.templates import flat


def arn(path: str) -> str:
    _, _, project_id, _, name, stack_id = path.split("/")
    return f"arn:openstack:heat::{project_id}:stacks/{name}/{stack_id}"


@pytest.mark.parametrize("safe", ["/", "/:", ""])
@pytest.mark.parametrize("below", ["", "/resources", "/resources/r0", "/resources/r0/metadata", "/events"])
def test_an_arn_redirects_to_the_full_path(service: Service, tenant: str, safe: str, below: str) -> None:
    path = service.created(tenant, "s", flat(1))
    named = urllib.parse.quote(arn(path) + below, safe=safe)
    answer = service.call("GET", f"/v1/{tenant}/stacks/{named}?a=b")
    assert (answer.status, answer.headers["Location"]) == (302, f"{service.url}{path}{below}?a=b")
    assert service.call("GET", f"{path}{below}").status == 200


def test_each_method_is_redirected(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", flat(1))
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = service.call(method, f"/v1/{tenant}/stacks/{arn(path)}")
        assert (answer.status, answer.headers["Location"]) == (302, service.url + path)


def test_an_arn_leads_to_its_project_where_the_caller_needs_rights(service: Service, tenant: str) -> None:
    path = service.created(tenant, "s", flat(1))
    answer = service.call("GET", f"/v1/{tenant}x/stacks/{arn(path)}", headers={"X-Project-Id": f"{tenant}x"})
    assert answer.headers["Location"] == service.url + path
    refused = service.call("GET", path, headers={"X-Project-Id": f"{tenant}x"})
    assert fault(refused) == (403, "Forbidden")


@pytest.mark.parametrize(
    "name",
    [
        "arn:openstack:heat::p:stacks/only",
        "arn:aws:heat::p:stacks/a/b",
        "arn:",
        "arn:openstack:heat::p:stacks//b",
        "arn:openstack:heat::p:servers/a/b",
    ],
)
def test_a_wrong_arn_is_not_found(service: Service, tenant: str, name: str) -> None:
    answer = service.call("GET", f"/v1/{tenant}/stacks/{name}")
    assert fault(answer) == (404, "EntityNotFound")


def test_an_arn_cannot_lead_to_another_host(service: Service, tenant: str) -> None:
    named = urllib.parse.quote("arn:openstack:heat::@evil.example:stacks/a/b//x\r\nA: b", safe="/")
    answer = service.call("GET", f"/v1/{tenant}/stacks/{named}")
    assert answer.headers["Location"].startswith(f"{service.url}/v1/%40evil.example/stacks/a/b/")
    assert "A" not in answer.headers
