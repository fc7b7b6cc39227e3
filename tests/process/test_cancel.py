"""Cancel on three conductors: calls that yield end, hanging ones are detached, whatever happens meanwhile."""

import collections
import dataclasses
import pathlib
import typing
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness import pace
from harness.deployment import Deployment, Servers
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for

Json = typing.Any
HOSTS = ("one", "two", "three")
GRACE = 15.0
"""Longer than a stalled machine takes to end steps that yield: these must not count as hanging."""
SOON = 12.0
"""Seconds after the grace period within which a cancelled stack can be used again, at a pace of 1."""
THREADS = 100
"""Threads of a conductor; one project has three quarters of them, and 200 resources are to be in progress."""
OPTIONS = f"[stacks]\ncancel_grace = {GRACE}\n[conductor]\nthreads = {THREADS}\nmost_written_off = 0\n"


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Iterator[Deployment]:
    started = servers.deployment(tmp_path_factory.mktemp("cancel"), OPTIONS, plugins=True)
    started.start_api()
    started.start_conductors(*HOSTS)
    yield started
    started.stop()


def template(**groups: tuple[int, str, Json]) -> Json:
    """:param groups: name -> (count, type, properties)"""
    resources = {
        f"{name}{number}": {"type": kind, "properties": properties}
        for name, (count, kind, properties) in groups.items()
        for number in range(count)
    }
    return {"heat_template_version": "2018-08-31", "resources": resources}


def query(deployment: Deployment, sql: str) -> list[Json]:
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        return list(conn.execute(sa.text(sql)).all())


def count(folder: pathlib.Path) -> int:
    return len(list(folder.iterdir()))


def running(deployment: Deployment) -> int:
    return int(query(deployment, "SELECT count(*) FROM task WHERE state = 'running'")[0][0])


def cancel(deployment: Deployment, path: str) -> None:
    status, answer = deployment.call("POST", f"{path}/actions", {"cancel_without_rollback": None})
    assert status == 200, answer


def statuses(deployment: Deployment, path: str) -> dict[str, int]:
    _, body = deployment.call("GET", f"{path}/resources")
    return dict(collections.Counter(item["resource_status"] for item in body["resources"]))


@pytest.mark.commit
def test_all_steps_that_yield_end_at_once(deployment: Deployment) -> None:
    path = deployment.create("yields", template(r=(200, "Test::Cooperative", {"seconds": 3600})))
    wait_for(lambda: running(deployment) == 200, 120)
    cancel(deployment, path)
    assert deployment.show(path)["stack_status"] == "CREATE_FAILED"
    wait_for(lambda: running(deployment) == 0, 60)
    assert statuses(deployment, path) == {"CREATE_FAILED": 200}
    hosts = query(
        deployment, "SELECT conductor, count(*) FROM event WHERE reason = 'CREATE aborted' GROUP BY conductor"
    )
    assert {host for host, _ in hosts} == set(HOSTS)
    assert sum(count for _, count in hosts) == 200


@pytest.mark.commit
def test_steps_that_hang_hold_nothing_up_and_leave_nothing_behind(
    deployment: Deployment, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "things"
    calls = tmp_path / "calls"
    released = tmp_path / "released"
    folder.mkdir()
    calls.mkdir()
    external = {"directory": str(folder)}
    hangs = {"blocked_until": str(released)}
    path = deployment.create(
        "hangs",
        template(
            e=(10, "Test::External", {**external, **hangs}),
            b=(10, "Test::Blocking", {"until": str(released), "calls": str(calls)}),
            ok=(20, "Test::External", external),
        ),
    )
    hung = {"CREATE_COMPLETE": 20, "CREATE_IN_PROGRESS": 20}
    wait_for(lambda: statuses(deployment, path) == hung, 60, lambda: str(statuses(deployment, path)))
    wait_for(lambda: (count(folder), count(calls)) == (30, 10), 60)
    cancel(deployment, path)
    stack = deployment.show(path)
    assert stack["stack_status"] == "CREATE_FAILED"
    assert {step["conductor"] for step in stack["not_stopped"]} <= set(HOSTS)
    assert len(stack["not_stopped"]) == 20
    goal = template(
        e=(10, "Test::External", external),
        b=(10, "Test::Blocking", {"seconds": 0}),
        ok=(20, "Test::External", external),
    )
    assert deployment.call("PUT", path, {"template": goal})[0] == 202
    # It is reported once a second, and no more when the threads have returned.
    lost = lambda: query(deployment, "SELECT sum(threads_written_off) FROM conductor")[0][0]  # noqa: E731
    soon = SOON * pace.measure().wall
    wait_for(lambda: lost() == 20, GRACE + soon, lambda: str(lost()))
    written_off = deployment.manage("service", "list", "-f", "value", "-c", "Written off")
    assert sum(map(int, written_off.split())) == 20
    assert deployment.wait_final(path, soon)["stack_status"] == "UPDATE_COMPLETE"
    assert lost() == 20, "it did not wait for what hangs"
    assert "not_stopped" not in deployment.show(path)
    before = resources(deployment, path)
    released.touch()
    wait_for(lambda: count(folder) == 30, 60, lambda: str(list(folder.iterdir())))
    remaining = {row["physical_resource_id"] for row in before if row["resource_type"] == "Test::External"}
    assert {file.stem for file in folder.iterdir()} == remaining
    assert resources(deployment, path) == before, "late results change nothing"
    wait_for(lambda: lost() == 0, 60)


def resources(deployment: Deployment, path: str) -> list[Json]:
    _, body = deployment.call("GET", f"{path}/resources")
    return sorted(body["resources"], key=lambda row: row["resource_name"])


def is_deleting(deployment: Deployment, path: str) -> bool:
    """Ask for the deletion as a client does, who comes again after a 503.

    A conductor that is stopped may hold rows of the stack until the database ends its transaction.
    """
    status, answer = deployment.call("DELETE", path)
    assert status in (204, 503), answer
    return status == 204


def test_a_cancel_reaches_its_end_while_conductors_and_the_broker_fail(
    tmp_path: pathlib.Path, servers: Servers
) -> None:
    folder = tmp_path / "things"
    released = tmp_path / "released"
    folder.mkdir()
    with RabbitMQ() as broker:
        own_servers = dataclasses.replace(servers, rabbitmq=broker)
        deployment = own_servers.deployment(tmp_path, OPTIONS, plugins=True)
        try:
            deployment.start_api()
            deployment.start_conductors(*HOSTS)
            slow = {"directory": str(folder), "poll_secs": 3600}
            hangs = {"directory": str(folder), "blocked_until": str(released)}
            path = deployment.create(
                "faults",
                template(
                    p=(30, "Test::External", slow),
                    y=(30, "Test::Cooperative", {"seconds": 3600}),
                    h=(9, "Test::External", hangs),
                ),
            )
            wait_for(lambda: running(deployment) == 69, 60)
            deployment.conductors["two"].pause()
            broker.kill()
            wait_for(lambda: is_deleting(deployment, path), 120)
            deployment.conductors["three"].kill()
            broker.start()
            deployment.conductors["two"].resume()
            released.touch()
            wait_for(lambda: not query(deployment, "SELECT id FROM stack WHERE status = 'IN_PROGRESS'"), 180)
            assert query(deployment, "SELECT action, status FROM stack WHERE parent_id IS NULL") == [
                ("DELETE", "COMPLETE")
            ]
            wait_for(lambda: running(deployment) == 0, 60)
            wait_for(lambda: not list(folder.iterdir()), 60, lambda: str(list(folder.iterdir())))
        finally:
            deployment.stop()


def test_a_conductor_with_too_many_hanging_threads_drains_and_ends_to_be_replaced(
    tmp_path: pathlib.Path, servers: Servers
) -> None:
    calls = tmp_path / "calls"
    calls.mkdir()
    options = "[stacks]\ncancel_grace = 0.5\n[conductor]\nmost_written_off = 3\ndrain = 2\n"
    deployment = servers.deployment(tmp_path, options, plugins=True)
    try:
        deployment.start_api()
        deployment.start_conductors("one")
        hangs = {"seconds": 3600, "calls": str(calls)}
        path = deployment.create("hangs", template(b=(3, "Test::Blocking", hangs)))
        wait_for(lambda: count(calls) == 3, 60)
        second = deployment.create("goes-on", template(r=(2, "OS::Heat::TestResource", {"wait_secs": 4})))
        cancel(deployment, path)
        worn_out = deployment.conductors["one"]
        wait_for(lambda: not worn_out.is_running, 60, worn_out.tail)
        assert worn_out.exit_code == 75
        deployment.launch_conductor("one")
        assert deployment.wait_final(second)["stack_status"] == "CREATE_COMPLETE"
    finally:
        deployment.stop()
