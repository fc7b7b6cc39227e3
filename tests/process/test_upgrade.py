"""Daemons of an older version are upgraded one after the other, under load: nothing is lost or repeated."""

import json
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from harness.deployment import BIN, Deployment
from harness.etcd import Etcd
from harness.previous import PREVIOUS, commit_before, older_version
from harness.processes import ProcessEnded
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from process.test_takeover import READY, Load, query, repeated, restart, statuses, wait_all_final
from stoker.db import revisions

HOSTS = ("one", "two")
OLDER = {
    "the previous commit": PREVIOUS,
    "the schema before": commit_before(f"db/migrations/versions/{revisions.EXPANDED}.py"),
}
"""The second one is the same until the schema changes again: so that always something is expanded."""
UPGRADES = [
    ("the previous commit", "postgresql"),
    ("the schema before", "mariadb"),
    pytest.param("the schema before", "postgresql", marks=pytest.mark.long),
    pytest.param("the schema before", "sqlite", marks=pytest.mark.long),
]
Make = Callable[[str, pathlib.Path], Deployment]


@pytest.fixture
def make(
    tmp_path: pathlib.Path, rabbitmq: RabbitMQ, etcd: Etcd, request: pytest.FixtureRequest
) -> Iterator[Make]:
    """A deployment on a server, whose database is made by a version; ended with the test."""
    made: list[Deployment] = []

    def begin(server: str, code: pathlib.Path) -> Deployment:
        sqlite = f"sqlite:///{tmp_path}/stoker.sqlite"
        url = sqlite if server == "sqlite" else request.getfixturevalue(server).create_database()
        deployment = Deployment(
            tmp_path,
            database_url=url,
            transport_url=rabbitmq.create_vhost(),
            backend_url=etcd.url,
            options=f"[coordination]\ngroup = {tmp_path.name}\n",
            code=code,
        )
        made.append(deployment)
        return deployment

    yield begin
    for deployment in made:
        deployment.stop()


@pytest.mark.parametrize(("older", "server"), UPGRADES)
def test_daemons_are_upgraded_one_after_the_other_under_load(
    make: Make, tmp_path_factory: pytest.TempPathFactory, older: str, server: str
) -> None:
    """As operation.md says it."""
    code = older_version(tmp_path_factory.mktemp("older"), OLDER[older])
    deployment = make(server, code)
    deployment.start_api(code)
    for daemon in [deployment.launch_conductor(host, code=code) for host in HOSTS]:
        daemon.wait_for_text(READY)
    with Load(deployment) as load:
        wait_for(lambda: load.count > 5, 60)
        assert at(deployment) in ("0001", revisions.NEWEST)
        deployment.manage("db", "sync", "--expand")
        assert at(deployment) in (revisions.EXPANDED, revisions.NEWEST)
        for host in HOSTS:
            both_work(deployment)
            assert deployment.conductors[host].stop() == 0
            restart(deployment, host)
        both_work(deployment)
        assert deployment.api is not None
        assert deployment.api.stop() == 0
        deployment.start_api()
        deployment.manage("db", "sync", "--contract")
        both_work(deployment)
    wait_all_final(deployment, 60)
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": load.count}
    assert statuses(deployment, "resource") == {"CREATE_COMPLETE": 6 * load.count}
    assert repeated(deployment) == []
    assert at(deployment) == revisions.NEWEST
    assert check(deployment) == (0, "")
    for host in HOSTS:
        assert "Traceback" not in deployment.conductors[host].text()


def at(deployment: Deployment) -> str:
    [(version,)] = query(deployment, "SELECT version_num FROM alembic_version")
    return str(version)


def both_work(deployment: Deployment) -> None:
    """Both conductors do something from now on."""
    began = time.time()
    wait_for(lambda: conductors_since(deployment, began) == {*HOSTS}, 60)


def conductors_since(deployment: Deployment, moment: float) -> set[str]:
    rows = query(
        deployment,
        "SELECT DISTINCT conductor FROM event WHERE conductor IS NOT NULL AND at > :since",
        since=moment,
    )
    return {host for (host,) in rows}


def check(deployment: Deployment) -> tuple[int, str]:
    """What stoker-status has against it: the exit code, and the details."""
    command = [BIN / "stoker-status", "--config-file", deployment.config, "upgrade", "check", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = [one["details"] for one in json.loads(done.stdout)["checks"]]
    return done.returncode, "; ".join(details for details in found if details)


def test_daemons_do_not_start_before_the_schema_is_expanded_and_say_what_to_run(
    make: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code = older_version(tmp_path_factory.mktemp("older"), OLDER["the schema before"])
    deployment = make("sqlite", code)
    if at(deployment) == revisions.NEWEST:  # There is no history.
        return
    daemon = deployment.launch_conductor("one")
    with pytest.raises(ProcessEnded, match="run `stoker-manage db sync --expand`, or, if no daemon of an"):
        daemon.wait_for_text(READY)
    status, told = check(deployment)
    assert status == 2
    assert "at version 0001" in told
    deployment.manage("db", "sync", "--expand")
    deployment.launch_conductor("one").wait_for_text(READY)
    status, told = check(deployment)
    assert status == 1
    assert "run `stoker-manage db sync --contract`" in told
