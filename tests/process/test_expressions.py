"""Expressions that take forever, on real conductors and a real API: everybody else continues."""

import contextlib
import os
import pathlib
import signal
import threading
import time
import typing
from collections.abc import Iterator

import pytest
from harness import pace
from harness.deployment import Deployment, Servers
from harness.templates import chain, one, template
from harness.waiting import wait_for

Json = typing.Any
HOSTS = ("one", "two", "three")
ENDLESS = "regex('(a+)+$').matches($.data)"
POISON = "a" * 60 + "!"
LATE: Json = {"get_attr": ["source", "output"]}
"""A value that is known when the source is made only, so that a conductor evaluates what it is in."""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Iterator[Deployment]:
    started = servers.deployment(tmp_path_factory.mktemp("expressions"))
    started.start_api()
    started.start_conductors(*HOSTS)
    yield started
    started.stop()


def yaql(expression: str, data: Json) -> Json:
    return {"yaql": {"expression": expression, "data": data}}


def pill(expression: str = ENDLESS) -> Json:
    return template({"source": one(value=POISON), "pill": one(value=yaql(expression, LATE))})


class Visitor(threading.Thread):
    """Asks for the API's health again and again."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__()
        self._deployment = deployment
        self._ended = threading.Event()
        self.waited: list[float] = []
        self.wrong: list[object] = []

    def run(self) -> None:
        while not self._ended.wait(0.1):
            since = time.monotonic()
            status, answer = self._deployment.call("GET", "/healthcheck")
            self.waited.append(time.monotonic() - since)
            if status != 200:
                self.wrong.append((status, answer))

    def __enter__(self) -> "Visitor":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self.join()


@pytest.mark.alone
def test_poison_stacks_fail_and_all_others_complete(deployment: Deployment) -> None:
    with Visitor(deployment) as visitor:
        poisoned = [deployment.create(f"pill{number}", pill()) for number in range(6)]
        harmless = [deployment.create(f"other{number}", chain(5)) for number in range(10)]
        assert {deployment.wait_final(path)["stack_status"] for path in harmless} == {"CREATE_COMPLETE"}
        for path in poisoned:
            stack = deployment.wait_final(path)
            assert stack["stack_status"] == "CREATE_FAILED"
            assert "took more than 1 s" in stack["stack_status_reason"]
            assert "regex" in stack["stack_status_reason"]
    assert visitor.wrong == []
    assert len(visitor.waited) > 10
    assert max(visitor.waited) < pace.measure().wall, sorted(visitor.waited)[-5:]
    listed = deployment.manage("service", "list")
    assert all(listed.count(host) for host in HOSTS)


@pytest.mark.alone
def test_requests_that_compute_forever_are_refused_within_two_seconds(deployment: Deployment) -> None:
    pattern = {"p": {"type": "string", "default": POISON, "constraints": [{"allowed_pattern": "(a+)+"}]}}
    cases: list[tuple[Json, str]] = [
        (template({"r": one(value=yaql(ENDLESS, POISON))}), "resources.r.properties.value.yaql"),
        (template({"r": one(value=yaql("pow(9, pow(9, 9))", 0))}), "resources.r.properties.value.yaql"),
        (template({"r": one(value=yaql("shiftBitsLeft(1, 99999999999)", 0))}), "resources.r.properties"),
        (template({}, parameters=pattern), "parameters.p.default"),
        (template({}, conditions={"c": yaql(ENDLESS, POISON)}), "conditions.c.yaql"),
        (
            template({f"r{number}": one(value=yaql("pow(9, pow(9, 9))", 0)) for number in range(500)}),
            "resources.r0.properties.value.yaql",
        ),
    ]
    with Visitor(deployment) as visitor:
        for body, path in cases:
            before = pace.measure()
            since = time.monotonic()
            status, answer = deployment.call(
                "POST", "/v1/t/stacks", {"stack_name": "refused", "template": body}
            )
            elapsed = time.monotonic() - since
            assert elapsed < 2 * before.worse(pace.measure()).wall
            assert (status, answer["error"]["type"]) == (400, "RequestLimitExceeded"), answer
            assert answer["error"]["message"].startswith(f"Request limit exceeded: {path}"), answer
    assert max(visitor.waited) < pace.measure().wall, sorted(visitor.waited)[-5:]
    assert visitor.wrong == []


def test_an_output_that_computes_forever_is_shown_as_an_error(deployment: Deployment) -> None:
    outputs = {
        "good": {"value": yaql("$.data.len()", LATE)},
        **{f"bad{number}": {"value": yaql(ENDLESS, LATE)} for number in range(20)},
    }
    path = deployment.create("shown", template({"source": one(value=POISON)}, outputs=outputs))
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    status, answer = deployment.call("GET", path)
    assert status == 200
    by_key = {item["output_key"]: item for item in answer["stack"]["outputs"]}
    assert by_key["good"].get("output_value") == len(POISON), by_key["good"]
    assert "took more than 1 s" in by_key["bad0"]["output_error"]
    assert all(by_key[f"bad{number}"]["output_value"] is None for number in range(20))
    assert "is used up" in by_key["bad19"]["output_error"]


@pytest.mark.commit
def test_the_processes_of_a_conductor_are_replaced_and_end_with_it(deployment: Deployment) -> None:
    conductor = deployment.launch_conductor("four")
    conductor.wait_for_text("is in the ring and serves")
    assert fork_servers(conductor.pid) == [], "the first expression starts it"
    path = deployment.create("first", template(summed(50)))
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    (fork_server,) = fork_servers(conductor.pid)
    for pid in [*children(fork_server), fork_server]:
        os.kill(pid, signal.SIGKILL)
    path = deployment.create("sums", template(summed(50)))
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    wait_for(lambda: fork_servers(conductor.pid) not in ([], [fork_server]), 60)
    before = [*fork_servers(conductor.pid), *children(fork_servers(conductor.pid)[0])]
    conductor.kill()
    wait_for(lambda: not any(map(is_there, before)), 60)


def summed(count: int) -> Json:
    resources = {"source": one(value=POISON)}
    return resources | {f"r{number}": one(value=yaql("$.data.len()", LATE)) for number in range(count)}


def children(pid: int) -> list[int]:
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in text(path).split()]


def text(path: pathlib.Path) -> str:
    """Nothing of a thread or process that has ended meanwhile."""
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""


def fork_servers(pid: int) -> list[int]:
    return [
        child
        for child in children(pid)
        if "stoker.template.sandbox.fork_server" in text(pathlib.Path(f"/proc/{child}/cmdline"))
    ]


def is_there(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except OSError:
        return False
