"""Separate processes on RabbitMQ, a database server and a coordination backend."""

import collections
import dataclasses
import datetime
import json
import pathlib
import signal
import time
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment, Servers
from harness.mariadb import MariaDB
from harness.processes import Process
from harness.programs import Program
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for

Json = typing.Any
HOSTS = ("one", "two", "three")


@pytest.fixture
def deployment(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, servers: Servers
) -> Iterator[Deployment]:
    kind = getattr(request, "param", Program)
    deployed = servers.deployment(tmp_path, "[DEFAULT]\nrpc_response_timeout = 10\n", kind=kind)
    try:
        yield deployed
    finally:
        deployed.stop()


def conductors_of(deployment: Deployment, path: str) -> collections.Counter[str]:
    """How many resources each conductor completed, from the events."""
    engine = sa.create_engine(deployment.database_url)
    with engine.connect() as conn:
        rows = conn.exec_driver_sql(
            "SELECT conductor, count(*) FROM event WHERE stack_id = %s AND status = 'COMPLETE' "
            "AND conductor IS NOT NULL GROUP BY conductor",
            (path.rsplit("/", 1)[1],),
        ).all()
    engine.dispose()
    return collections.Counter(dict(rows))


@pytest.mark.parametrize("deployment", [Process], indirect=True, ids=["started for real"])
def test_three_conductors_share_a_layered_graph_of_500(deployment: Deployment) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    path = deployment.create("layers", templates.layered(10, 50))
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    shares = conductors_of(deployment, path)
    assert set(shares) == set(HOSTS)
    assert min(shares.values()) >= 25, f"each conductor does a real part: {shares}"
    status, _ = deployment.call("DELETE", path)
    assert status == 204
    assert deployment.wait_final(path)["stack_status"] == "DELETE_COMPLETE"


@pytest.mark.commit
def test_a_stack_is_accepted_while_no_conductor_is_up_and_runs_when_one_comes(deployment: Deployment) -> None:
    deployment.start_api()
    path = deployment.create("early", templates.chain(5))
    time.sleep(1)
    assert deployment.show(path)["stack_status"] == "CREATE_IN_PROGRESS"
    deployment.start_conductors("one")
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"


@pytest.mark.commit
def test_killed_conductors_work_is_done_by_the_others(deployment: Deployment) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    path = deployment.create("bereaved", templates.layered(4, 30, wait_secs=1))
    time.sleep(1.5)
    deployment.conductors["two"].kill()
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    _, answer = deployment.call("GET", f"{path}/resources")
    assert len(answer["resources"]) == 120
    assert {item["resource_status"] for item in answer["resources"]} == {"CREATE_COMPLETE"}


@pytest.mark.commit
def test_a_conductor_stopped_by_sigterm_hands_its_work_over_and_exits_with_0(deployment: Deployment) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    path = deployment.create("rolling", templates.layered(3, 30, wait_secs=1))
    time.sleep(0.7)
    assert deployment.conductors["one"].stop() == 0
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    _, answer = deployment.call("GET", f"{path}/events")
    counts = collections.Counter(
        (item["resource_name"], item["resource_status"]) for item in answer["events"]
    )
    assert max(counts.values()) == 1, "nothing was done twice"


@pytest.mark.commit
def test_a_stack_times_out_also_when_its_owner_is_killed(deployment: Deployment) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    paths = [
        deployment.create(f"slow{index}", templates.flat(1, wait_secs=-1), timeout_mins=1)
        for index in range(6)
    ]
    _shorten(deployment, seconds=4)
    deployment.conductors["three"].kill()
    for path in paths:
        stack = deployment.wait_final(path)
        assert (stack["stack_status"], stack["stack_status_reason"]) == ("CREATE_FAILED", "Create timed out")
        _, answer = deployment.call("GET", f"{path}/events?resource_status=FAILED")
        events = [item for item in answer["events"] if item["resource_name"].startswith("slow")]
        assert len(events) == 1, "the timeout struck once"


def _shorten(deployment: Deployment, *, seconds: float) -> None:
    """A minute is the shortest timeout of Heat's API; the test has less patience."""
    engine = sa.create_engine(deployment.database_url)
    with engine.begin() as conn:
        conn.exec_driver_sql("UPDATE stack SET deadline_at = %s", (time.time() + seconds,))
    engine.dispose()


def test_the_ring_settles_after_a_rebalance_and_a_drain_moves_the_slice(deployment: Deployment) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    assert "every one of 4096 shards has one owner" in deployment.manage("ring", "rebalance", "--wait")
    path = deployment.create("moving", templates.layered(3, 20, wait_secs=1))
    deployment.manage("ring", "drain", "two")
    wait_for(lambda: " 0 | 0.0%" in _row(deployment, "two"), 60, lambda: deployment.manage("ring", "show"))
    assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
    deployment.manage("ring", "undrain", "two")
    deployment.manage("ring", "rebalance", "--wait")
    wait_for(
        lambda: " 0 | 0.0%" not in _row(deployment, "two"), 60, lambda: deployment.manage("ring", "show")
    )


def test_after_a_death_all_views_agree_and_never_show_more_than_one_ring(
    deployment: Deployment,
) -> None:
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    deployment.manage("ring", "rebalance", "--wait")
    deployment.conductors["two"].kill()
    while True:
        ring = by_host(json.loads(deployment.manage("ring", "show", "-f", "json")))
        assert sum(row["Shards"] for row in ring.values()) <= 4096
        assert sum(row["Share"] for row in ring.values()) <= 1.0002
        assert ring["two"]["Alive"] is False
        listed = by_host(json.loads(deployment.manage("service", "list", "-f", "json")))
        assert listed["two"]["Status"] == "down"
        services = by_host(deployment.call("GET", "/v1/t/services")[1]["services"], "host")
        assert services["two"]["status"] == "down"
        if ring["two"]["Shards"] == 0:
            break
    for row in [*ring.values(), *listed.values()]:
        datetime.datetime.strptime(row["Reported"], "%Y-%m-%dT%H:%M:%S%z")
    well = "settled: every one of 4096 shards has one owner; not alive: two"
    wait_for(lambda: deployment.manage("ring", "show").splitlines()[-1] == well, 60)
    ring = by_host(json.loads(deployment.manage("ring", "show", "-f", "json")))
    assert [ring[host]["Alive"] for host in ("one", "three")] == [True, True]


def by_host(rows: list[Json], name: str = "Host") -> dict[str, Json]:
    return {row[name]: row for row in rows}


def _row(deployment: Deployment, host: str) -> str:
    return next(line for line in deployment.manage("ring", "show").splitlines() if f"| {host} " in line)


def test_a_restarted_broker_and_a_paused_conductor_lose_nothing(
    tmp_path: pathlib.Path, servers: Servers
) -> None:
    with RabbitMQ() as broker:
        own_servers = dataclasses.replace(servers, rabbitmq=broker)
        deployment = own_servers.deployment(tmp_path, "[DEFAULT]\nrpc_response_timeout = 10\n")
        try:
            deployment.start_api()
            deployment.start_conductors(*HOSTS)
            path = deployment.create("shaken", templates.layered(4, 20, wait_secs=1))
            time.sleep(0.5)
            deployment.conductors["one"].send(signal.SIGSTOP)
            broker.restart()
            time.sleep(3)
            deployment.conductors["one"].send(signal.SIGCONT)
            assert deployment.wait_final(path, 180)["stack_status"] == "CREATE_COMPLETE"
        finally:
            deployment.stop()


def test_the_same_works_on_mariadb_with_a_file_group(
    tmp_path: pathlib.Path, rabbitmq: RabbitMQ, mariadb: MariaDB
) -> None:
    deployment = Deployment(
        tmp_path,
        database_url=mariadb.create_database(),
        transport_url=rabbitmq.create_vhost(),
        backend_url=f"file://{tmp_path / 'group'}",
    )
    try:
        deployment.start_api()
        deployment.start_conductors("one", "two")
        path = deployment.create("maria", templates.layered(5, 20))
        assert deployment.wait_final(path)["stack_status"] == "CREATE_COMPLETE"
        deployment.call("DELETE", path)
        assert deployment.wait_final(path)["stack_status"] == "DELETE_COMPLETE"
    finally:
        deployment.stop()
