"""Options of an operator: how many stacks a project may have, which of them lists omit, the own region."""

import collections
import concurrent.futures
import json
import threading
from collections.abc import Iterator

import pytest
import requests
from client.serving import Json, Service, fault, serving
from harness.templates import flat, template

OPTIONS = """\
[stacks]
max_stacks_per_tenant = 3
hidden_stack_tags = infra, service
[clients]
region_name = north
"""
RACERS = 8


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("limited"), OPTIONS) as service:
        yield service


def names(service: Service, project: str, query: str = "") -> list[str]:
    return [stack["stack_name"] for stack in service.get(f"/v1/{project}/stacks?{query}")["stacks"]]


def test_a_project_has_no_more_stacks_than_it_may_have(limited: Service) -> None:
    paths = [limited.created("full", name, flat(1)) for name in ("a", "b", "c")]
    body: Json = {"stack_name": "d", "template": flat(1)}
    for path in ("stacks", "stacks/preview"):
        answer = limited.call("POST", f"/v1/full/{path}", body)
        assert fault(answer) == (400, "RequestLimitExceeded")
        assert answer.error["message"] == (
            "Request limit exceeded: You have reached the maximum stacks per tenant, 3. "
            "Please delete some stacks."
        )
    assert names(limited, "full", "show_deleted=true") == ["c", "b", "a"]
    limited.created("other", "d", flat(1))
    limited.call("DELETE", paths[0])
    limited.settled(paths[0])
    limited.created("full", "d", flat(1))


def test_nested_stacks_are_not_counted(limited: Service) -> None:
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": flat_member()}}
    for name in ("a", "b", "c"):
        limited.created(
            "nested", name, {"heat_template_version": "2021-04-16", "resources": {"group": group}}
        )
    assert len(names(limited, "nested", "show_nested=true")) == 6


def flat_member() -> Json:
    return {"type": "OS::Heat::TestResource"}


def test_simultaneous_requests_pass_up_to_the_limit(limited: Service) -> None:
    start = threading.Barrier(RACERS)

    def create(number: int) -> int:
        with requests.Session() as http:
            http.get(f"{limited.url}/healthcheck", timeout=120)
            body = {"stack_name": f"s{number}", "template": flat(1)}
            start.wait(300)
            return http.post(f"{limited.url}/v1/crowd/stacks", json=body, timeout=120).status_code

    with concurrent.futures.ThreadPoolExecutor(RACERS) as pool:
        statuses = collections.Counter(pool.map(create, range(RACERS)))
    assert statuses == {201: 3, 400: RACERS - 3}
    assert len(names(limited, "crowd")) == 3


def test_lists_omit_stacks_with_a_hidden_tag_unless_requested(limited: Service) -> None:
    paths = {
        name: limited.created("tags", name, flat(1), tags=tags)
        for name, tags in {"plain": "web", "infra": "web,infra", "service": "service"}.items()
    }
    everything = ["service", "infra", "plain"]
    assert names(limited, "tags") == names(limited, "tags", "show_hidden=false") == ["plain"]
    assert names(limited, "tags", "show_hidden=true") == everything
    assert names(limited, "tags", "tags=infra") == []
    assert names(limited, "tags", "tags=infra&show_hidden=true") == ["infra"]
    assert limited.get("/v1/tags/stacks?with_count=true")["count"] == 1
    assert [stack["stack_name"] for stack in limited.get("/v1/tags/stacks/detail")["stacks"]] == ["plain"]
    tagged = limited.get(paths["infra"])["stack"]
    assert tagged["tags"] == ["web", "infra"]
    assert limited.call("GET", "/v1/tags/stacks/infra").status == 302
    refused = limited.call("POST", "/v1/tags/stacks", {"stack_name": "d", "template": flat(1)})
    assert fault(refused) == (400, "RequestLimitExceeded")  # Hidden stacks count.


def test_a_stack_in_the_own_region_is_nested(limited: Service) -> None:
    inner = json.dumps(flat(1))
    places: list[Json] = [{"region_name": "north", "insecure": True}, {"region_name": "south"}]
    bodies = [
        {"type": "OS::Heat::Stack", "properties": {"template": inner, "context": place}} for place in places
    ]
    local, remote = (template({"stack": body}) for body in bodies)
    path = limited.created("regions", "own", local)
    assert len(limited.get(f"{path}/resources?nested_depth=1")["resources"]) == 2
    # Another region has requests, which need a credential of a user.
    failed = limited.settled(limited.create("regions", "other", remote))
    assert failed["stack_status"] == "CREATE_FAILED"
    assert "The stack has no credential of a user" in failed["stack_status_reason"]
