"""Death, restart and removal of conductors under load: nothing is lost, nothing is done twice."""

import collections
import concurrent.futures
import pathlib
import threading
import time
import typing
from collections.abc import Iterator, Sequence

import pytest
from harness import pace, templates
from harness.deployment import Deployment, Servers
from harness.waiting import wait_for
from process.load import (
    SHARDS,
    Load,
    create_many,
    query,
    repeated,
    restart,
    seconds_of,
    statuses,
    unfinished,
    wait_all_final,
)
from stoker.ring.hashring import Assignment, Member, View, assign

HOSTS = ("one", "two", "three")
TIMEOUT = 12.0
"""Seconds until a silent member counts as dead: only the killed one may, however busy the machine is."""


class Start(typing.Protocol):
    """Starts a deployment with these conductors; ended with the test."""

    def __call__(self, options: str = "", hosts: Sequence[str] = HOSTS) -> Deployment: ...


@pytest.fixture
def start(tmp_path: pathlib.Path, servers: Servers) -> Iterator[Start]:
    deployments: list[Deployment] = []

    def begin(options: str = "", hosts: Sequence[str] = HOSTS) -> Deployment:
        deployment = servers.deployment(tmp_path, options, plugins=True)
        deployments.append(deployment)
        deployment.start_api()
        deployment.start_conductors(*hosts)
        return deployment

    yield begin
    for deployment in deployments:
        deployment.stop()


def ring(*hosts: str) -> Assignment:
    return assign(View.of([Member(host, "x") for host in hosts], SHARDS))


def gated(count: int, gate: pathlib.Path, every: float = 1) -> typing.Any:
    """Resources that are in progress until the gate is made."""
    properties = {"until": str(gate), "every": every}
    return templates.template(
        {f"r{n}": {"type": "Test::Gated", "properties": properties} for n in range(count)}
    )


def put_deadlines(deployment: Deployment, deadlines: Sequence[tuple[str, float]]) -> None:
    """Store deadlines, all at once: none must be over before it is stored."""
    rows = ", ".join(f"('{key}', {at!r})" for key, at in deadlines)
    query(
        deployment,
        f"UPDATE stack SET deadline_at = due.at FROM (VALUES {rows}) AS due (id, at) WHERE stack.id = due.id",
    )


@pytest.mark.alone
def test_300_stacks_survive_a_kill_and_their_timeouts_strike_once_by_the_new_owner(
    start: Start, tmp_path: pathlib.Path
) -> None:
    deployment = start(f"timeout = {TIMEOUT}\n")
    gate = tmp_path / "gate"
    create_many(deployment, [f"work{n}" for n in range(260)], gated(1, gate, every=5))
    create_many(deployment, [f"late{n}" for n in range(40)], templates.flat(1, wait_secs=-1))
    assert unfinished(deployment) == 300
    late = query(deployment, "SELECT id, shard FROM stack WHERE name LIKE 'late%'")
    slower = pace.measure()
    deployment.conductors["two"].kill()
    killed_at = time.time()
    deadlines = [(key, shard, killed_at + 1 + n * (TIMEOUT + 1) / 40) for n, (key, shard) in enumerate(late)]
    put_deadlines(deployment, [(key, deadline) for key, _, deadline in deadlines])
    gate.touch()
    wait_all_final(deployment, 180)
    most = (TIMEOUT + 1) * slower.worse(pace.measure()).wall
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": 260, "CREATE_FAILED": 40}
    assert repeated(deployment) == []
    struck = query(deployment, "SELECT stack_id, conductor, at FROM event WHERE reason = 'Create timed out'")
    who = {stack_id: (conductor, at) for stack_id, conductor, at in struck}
    before = ring(*HOSTS)
    after = ring("one", "three")
    bereaved = 0
    for stack_id, shard, deadline in deadlines:
        conductor, at = who[stack_id]
        assert deadline <= at <= deadline + most
        if before.owner_of(shard) == "two":
            bereaved += 1
            assert conductor == after.owner_of(shard), "the new owner"
    assert bereaved >= 3


@pytest.mark.alone
def test_a_restarted_conductor_resumes_its_predecessors_tasks_within_a_second(
    start: Start, tmp_path: pathlib.Path
) -> None:
    deployment = start("timeout = 300\n")
    gate = tmp_path / "gate"
    create_many(deployment, [f"s{n}" for n in range(30)], gated(4, gate, every=3))
    claimed = "SELECT count(*) FROM task WHERE member = :member AND state = 'running'"
    members = "SELECT member, count(*) FROM task WHERE state = 'running' GROUP BY member"
    wait_for(lambda: len(query(deployment, members)) == 3)
    [old] = [member for member, _ in query(deployment, members) if member.startswith("two/")]
    deployment.conductors["two"].kill()
    assert query(deployment, claimed, member=old)[0][0] > 0, "nobody may think it dead yet"
    ready = restart(deployment, "two")
    wait_for(lambda: query(deployment, claimed, member=old)[0][0] == 0, 60)
    assert time.monotonic() - ready <= pace.measure().wall
    gate.touch()
    wait_all_final(deployment, 180)
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": 30}
    assert repeated(deployment) == []


@pytest.mark.alone
def test_a_rebalance_settles_in_two_seconds_and_a_drain_with_work_in_progress_fails_nothing(
    start: Start, tmp_path: pathlib.Path
) -> None:
    deployment = start()
    gate = tmp_path / "gate"
    settled = "every one of 4096 shards has one owner"
    own_start, _ = seconds_of(lambda: deployment.manage("ring", "show"))
    tries = [seconds_of(lambda: deployment.manage("ring", "rebalance", "--wait")) for _ in range(2)]
    assert all(settled in message for _, message in tries)
    assert min(seconds for seconds, _ in tries) - own_start < 2 * pace.measure().wall
    create_many(deployment, [f"s{n}" for n in range(20)], gated(6, gate, every=2))
    deployment.manage("ring", "drain", "two")
    owned = "SELECT shards_owned FROM conductor WHERE host = 'two'"
    wait_for(lambda: query(deployment, owned)[0][0] == 0, 60)
    assert unfinished(deployment) == 20, "the slice moved while work was in progress"
    gate.touch()
    wait_all_final(deployment, 180)
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": 20}
    assert repeated(deployment) == []
    deployment.manage("ring", "undrain", "two")
    wait_for(lambda: query(deployment, owned)[0][0] > 0, 60)


def test_a_rolling_restart_under_load_loses_and_repeats_nothing(start: Start) -> None:
    deployment = start()
    with Load(deployment) as load:
        for host in HOSTS:
            more = load.count + 7
            wait_for(lambda more=more: load.count >= more, 120)  # type: ignore[misc]
            assert deployment.conductors[host].stop() == 0
            restart(deployment, host)
    wait_all_final(deployment, 180)
    assert load.count > 20
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": load.count}
    assert statuses(deployment, "resource") == {"CREATE_COMPLETE": 6 * load.count}
    assert repeated(deployment) == []
    events = query(deployment, "SELECT status, count(*) FROM event GROUP BY status")
    assert collections.Counter(dict(events)) == {
        "IN_PROGRESS": 7 * load.count,
        "COMPLETE": 7 * load.count,
    }


@pytest.mark.alone
def test_an_idle_conductor_stops_in_a_second_and_a_half(start: Start) -> None:
    deployment = start(hosts=["one", "two"])
    time.sleep(3)  # The bus's listeners poll more and more rarely while nothing comes.
    times = [seconds_of(deployment.conductors[host].stop) for host in ("one", "two")]
    assert [code for _, code in times] == [0, 0]
    assert min(seconds for seconds, _ in times) < 1.5 * pace.measure().wall, f"{times}"


@pytest.mark.commit
def test_many_connections_at_once_are_all_answered(start: Start) -> None:
    deployment = start(hosts=[])
    together = threading.Barrier(60)

    def ask(_: int) -> int:
        together.wait()
        return deployment.call("GET", "/healthcheck")[0]

    with concurrent.futures.ThreadPoolExecutor(60) as clients:
        assert list(clients.map(ask, range(60))) == [200] * 60
