"""Projects that compute much, or ask often, beside one that does neither."""

import concurrent.futures
from collections.abc import Iterator

import pytest
from client.serving import Answer, Json, Service, fault, serving
from harness.templates import one, template
from harness.waiting import wait_for

OPTIONS = """\
[api]
threads = 4
max_requests_per_minute = 120
[yaql]
timeout = 0.5
"""
BURST = 20
"""Requests that a project may send at once at 120 in a minute."""
POISON: Json = template(
    {},
    parameters={
        "p": {"type": "string", "default": "a" * 60 + "!", "constraints": [{"allowed_pattern": "(a+)+$"}]}
    },
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("shares"), OPTIONS) as service:
        yield service


def validated(service: Service, project: str, document: Json) -> Answer:
    return service.call("POST", f"/v1/{project}/validate", {"template": document})


def test_a_projects_endless_patterns_hold_up_nobody_else(shared: Service) -> None:
    sums = template({"r": one(value={"yaql": {"expression": "1 + 1", "data": {}}})})
    with concurrent.futures.ThreadPoolExecutor(8) as senders:
        poisoned = [senders.submit(validated, shared, "greedy", POISON) for _ in range(8)]
        wait_for(lambda: any(answer.done() for answer in poisoned))
        assert validated(shared, "modest", sums).status == 200
        assert shared.call("GET", "/v1/modest/stacks").status == 200
        # By the order of arrival five of them would have been answered first.
        assert sum(not answer.done() for answer in poisoned) > 3
        assert {fault(answer.result())[0] for answer in poisoned} <= {400, 503}


def test_a_project_that_asks_too_often_is_refused(shared: Service) -> None:
    answers = [shared.call("GET", "/v1/busy/stacks") for _ in range(2 * BURST)]
    assert {answer.status for answer in answers[:BURST]} == {200}
    assert (429, "TooManyRequests") in [fault(answer) for answer in answers if answer.status != 200]
    assert shared.call("GET", "/v1/modest/stacks").status == 200
