"""Requests at the same time: one name, one stack; all signals are kept."""

import collections
import concurrent.futures
import contextlib
import threading
import time
import typing
from collections.abc import Callable

import requests
from client.serving import Service
from harness.templates import flat, template
from harness.waiting import wait_for

Json = typing.Any
RACERS = 20


def at_once(service: Service, send: Callable[[requests.Session, int], requests.Response]) -> list[Json]:
    """Let all racers send at the same time, each on a connection of its own that is open already."""
    start = threading.Barrier(RACERS)

    def race(number: int) -> requests.Response:
        with requests.Session() as session:
            persistently(lambda: session.get(f"{service.url}/healthcheck", timeout=120))
            start.wait(300)
            return persistently(lambda: send(session, number))

    with concurrent.futures.ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(race, range(RACERS)))


def persistently(send: Callable[[], requests.Response]) -> requests.Response:
    """Send again what the server reset before it took it: its queue of new connections may be full."""
    for _ in range(10):
        with contextlib.suppress(requests.ConnectionError):
            return send()
        time.sleep(0.1)
    return send()


def test_of_many_creations_of_one_name_exactly_one_succeeds(service: Service, tenant: str) -> None:
    for name in ("first", "second", "third"):
        answers = at_once(service, lambda http, number, name=name: post(http, service, tenant, name, flat(3)))
        counts = collections.Counter(answer.status_code for answer in answers)
        assert counts == {201: 1, 409: RACERS - 1}
        refused = [answer.json()["error"] for answer in answers if answer.status_code == 409]
        assert {error["type"] for error in refused} == {"StackExists"}
        (winner,) = [answer.json()["stack"]["id"] for answer in answers if answer.status_code == 201]
        path = f"/v1/{tenant}/stacks/{name}/{winner}"
        assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    assert len(service.get(f"/v1/{tenant}/stacks?show_deleted=true")["stacks"]) == 3
    assert (
        sum(len(service.get(f"{url(stack)}/resources")["resources"]) for stack in listed(service, tenant))
        == 9
    )


def test_many_projects_may_take_one_name_at_once(service: Service, tenant: str) -> None:
    answers = at_once(
        service, lambda http, number: post(http, service, f"{tenant}-{number}", "same", flat(1))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["stack"]["id"] for answer in answers}) == RACERS


def test_many_deletions_at_once_delete_once(service: Service, tenant: str) -> None:
    path = service.created(tenant, "doomed", flat(2))
    answers = at_once(service, lambda http, number: http.delete(service.url + path, timeout=120))
    assert {answer.status_code for answer in answers} <= {204, 404}
    assert 204 in {answer.status_code for answer in answers}
    assert service.settled(path)["stack_status"] == "DELETE_COMPLETE"
    events = service.get(f"{path}/events?resource_action=DELETE")["events"]
    counts = collections.Counter((item["resource_name"], item["resource_status"]) for item in events)
    assert set(counts.values()) == {1}, counts


def test_of_signals_at_once_none_is_lost(service: Service, tenant: str) -> None:
    resources = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "wait": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "handle"}, "timeout": 3600, "count": RACERS},
        },
    }
    path = service.create(tenant, "crowd", template(resources))
    handle = f"{path}/resources/handle"
    wait_for(lambda: service.get(handle)["resource"]["resource_status"] == "CREATE_COMPLETE")
    signal = f"{service.url}{handle}/signal"
    answers = at_once(service, lambda http, number: http.post(signal, json={"id": str(number)}, timeout=120))
    assert {answer.status_code for answer in answers} == {200}
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    metadata = service.get(f"{handle}/metadata")["metadata"]
    assert set(metadata) == {str(number) for number in range(RACERS)}


def post(http: requests.Session, service: Service, tenant: str, name: str, body: Json) -> requests.Response:
    return http.post(
        f"{service.url}/v1/{tenant}/stacks", json={"stack_name": name, "template": body}, timeout=120
    )


def listed(service: Service, tenant: str) -> list[Json]:
    stacks: list[Json] = service.get(f"/v1/{tenant}/stacks")["stacks"]
    return stacks


def url(stack: Json) -> str:
    link: str = stack["links"][0]["href"]
    return link
