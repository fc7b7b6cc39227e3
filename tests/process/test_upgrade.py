"""Daemons of an older version are upgraded one after the other, under load: nothing is lost or repeated."""

import json
import pathlib
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.previous import PREVIOUS, commit_before, older_version
from harness.processes import Process, ProcessEnded
from harness.programs import BIN, run
from harness.rabbitmq import RabbitMQ
from harness.third_party import with_plugins
from harness.waiting import wait_for
from process.load import READY, Load, query, repeated, restart, statuses, wait_all_final
from stoker.db.schema import revisions
from stoker.rpc.level import HOLDS

HOSTS = ("one", "two")
SCHEMA_BEFORE = f"{revisions.NUMBER - 1:04}_contract"
OLDER = {
    "the previous commit": PREVIOUS,
    "the schema before": commit_before(f"db/schema/migrations/versions/{revisions.EXPANDED}.py"),
}
"""The second one is the same until the schema changes again: so that always something is expanded."""
UPGRADES = [
    ("the previous commit", "postgresql"),
    ("the schema before", "mariadb"),
    pytest.param("the schema before", "postgresql", marks=pytest.mark.long),
    pytest.param("the schema before", "sqlite", marks=pytest.mark.long),
]
Make = Callable[..., Deployment]


@pytest.fixture
def make(
    tmp_path: pathlib.Path, rabbitmq: RabbitMQ, etcd: Etcd, request: pytest.FixtureRequest
) -> Iterator[Make]:
    """A deployment on a server, whose database is made by a version; ended with the test."""
    made: list[Deployment] = []

    def begin(server: str, code: pathlib.Path, env: Mapping[str, str] | None = None) -> Deployment:
        sqlite = f"sqlite:///{tmp_path}/stoker.sqlite"
        url = sqlite if server == "sqlite" else request.getfixturevalue(server).create_database()
        deployment = Deployment(
            tmp_path,
            database_url=url,
            transport_url=rabbitmq.create_vhost(),
            backend_url=etcd.url,
            options=f"[coordination]\ngroup = {tmp_path.name}\n",
            code=code,
            env=dict(env or {}),
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
    """As day2.md says it."""
    code = older_version(tmp_path_factory.mktemp("older"), OLDER[older])
    deployment = make(server, code)
    deployment.start_api(code)
    for daemon in [deployment.launch_conductor(host, code=code) for host in HOSTS]:
        daemon.wait_for_text(READY)
    with Load(deployment) as load:
        wait_for(lambda: load.count > 5, 60)
        assert at(deployment) in (SCHEMA_BEFORE, revisions.NEWEST)
        deployment.manage("db", "sync", "--expand")
        assert at(deployment) in (revisions.EXPANDED, revisions.NEWEST)
        if at(deployment) == revisions.EXPANDED:
            with pytest.raises(ProcessEnded, match="conductors of an older release run: one, two"):
                deployment.manage("db", "sync", "--contract")
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
    wait_all_final(deployment, 180)
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
    wait_for(lambda: conductors_since(deployment, began) == {*HOSTS}, 120)


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
    done = run(command)
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
    assert f"at version {SCHEMA_BEFORE}" in told
    deployment.manage("db", "sync", "--expand")
    deployment.launch_conductor("one").wait_for_text(READY)
    status, told = check(deployment)
    assert status == 1
    assert "run `stoker-manage db sync --contract`" in told


@dataclass(frozen=True)
class Pair:
    """Conductors that understand 1.0 and 1.1 of the messages."""

    deployment: Deployment
    old: Process
    new: Process


SLOW = {"type": "Test::Cooperative", "properties": {"seconds": 3600}}


@pytest.fixture
def pair(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Both hold tasks of whatever stack is created."""
    code = older_version(tmp_path_factory.mktemp("older"), OLDER["the schema before"])
    # Conductors that understood 1.0 only are two numbers of the schema behind: one is made of these.
    contract = code / "stoker" / "rpc" / "contract.py"
    contract.write_text(f'{contract.read_text()}\nVERSION = "1.0"\n')
    deployment = make("postgresql", code, with_plugins(tmp_path_factory.mktemp("plugins")))
    deployment.manage("db", "sync", "--expand")
    deployment.start_api()
    old = deployment.launch_conductor("old", code=code)
    new = deployment.launch_conductor("new")
    for daemon in (old, new):
        daemon.wait_for_text(READY)
    return Pair(deployment, old, new)


def begin(deployment: Deployment, name: str) -> str:
    """A stack of which each conductor that is there runs some steps."""
    resources = {f"r{number}": SLOW for number in range(64)}  # Hints of 16 each.
    path = deployment.create(name, {"heat_template_version": "2018-08-31", "resources": resources})
    of = "FROM task t JOIN stack s ON s.id = t.stack_id WHERE t.state = 'running' AND s.name = :name"
    members = f"SELECT DISTINCT t.member {of}"
    there = sum(daemon.is_running for daemon in deployment.conductors.values())
    wait_for(lambda: len(query(deployment, members, name=name)) == there, 120)
    return path


def cancelled_within(deployment: Deployment, path: str, seconds: float) -> str:
    """Cancel a stack, and wait for the end of its steps; the request's id."""
    request = urllib.request.Request(
        f"{deployment.url}{path}/actions",
        data=b'{"cancel_without_rollback": null}',
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        known = str(answer.headers["X-Openstack-Request-Id"])
    stack_id = path.rsplit("/", 1)[1]
    left = "SELECT count(*) FROM task WHERE stack_id = :id AND member IS NOT NULL"
    wait_for(lambda: query(deployment, left, id=stack_id)[0][0] == 0, seconds)
    return known


REFUSED = re.compile(r"does not support RPC version 1\.1|\(cancel\) of version 1\.1 was refused")


def pin(deployment: Deployment, version: str) -> None:
    """For the API, while it runs."""
    assert deployment.api is not None
    told = deployment.api.text().count("upgrade_levels.conductor")
    text = deployment.config.read_text().partition("[upgrade_levels]")[0]
    deployment.config.write_text(f"{text}[upgrade_levels]\nconductor = {version}\n")
    deployment.api.send(signal.SIGHUP)
    api = deployment.api
    wait_for(lambda: api.text().count("upgrade_levels.conductor") > told, 60)


def test_messages_keep_to_what_the_oldest_conductor_understands_and_one_that_is_refused_is_made_up_for(
    pair: Pair,
) -> None:
    deployment, mixed = pair.deployment, "this release speaks RPC 1.1, old speaks 1.0: they work together"
    cancelled_within(deployment, begin(deployment, "both"), 10)
    assert not REFUSED.search(pair.old.text())
    shown = json.loads(deployment.manage("service", "list", "-f", "json"))
    assert {row["Host"]: row["RPC"] for row in shown} == {"old": "1.0", "new": "1.1"}
    status, told = check(deployment)
    assert status == 1
    assert told.endswith(mixed)

    pin(deployment, "1.1")
    status, told = check(deployment)
    assert status == 2
    assert "[upgrade_levels] conductor = 1.1, but old speaks 1.0: they refuse what is newer; set auto" in told
    path = begin(deployment, "pinned")
    cancelled_within(deployment, path, 20)
    wait_for(lambda: bool(REFUSED.search(pair.old.text())), 60, pair.old.tail)
    assert deployment.show(path)["stack_status"] == "CREATE_FAILED"

    pin(deployment, "auto")
    assert pair.old.stop() == 0
    time.sleep(HOLDS)  # The API sees no ring.
    request = cancelled_within(deployment, begin(deployment, "new"), 10)
    assert re.search(rf"\[{request} t [^]]+\] Cancelling \d+ tasks of trv-\S+", pair.new.text())
    deployment.manage("db", "sync", "--contract")
    assert check(deployment) == (0, "")
