"""Daemons are upgraded one after the other, under load: nothing is lost or repeated."""

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
from harness.next_release import EXPANDED, NEWEST, RPC, next_release
from harness.processes import Process, ProcessEnded
from harness.programs import BIN, run
from harness.rabbitmq import RabbitMQ
from harness.third_party import with_plugins
from harness.waiting import wait_for
from process.load import READY, Load, query, repeated, statuses, wait_all_final
from stoker.db.schema import revisions
from stoker.rpc.contract import VERSION

HOSTS = ("one", "two")
SERVERS = [
    pytest.param("postgresql", marks=pytest.mark.commit),
    "mariadb",
    pytest.param("sqlite", marks=pytest.mark.long),
]
Make = Callable[..., Deployment]


@pytest.fixture
def make(
    tmp_path: pathlib.Path, rabbitmq: RabbitMQ, etcd: Etcd, request: pytest.FixtureRequest
) -> Iterator[Make]:
    """A deployment on a server; ended with the test."""
    deployments: list[Deployment] = []

    def begin(server: str, env: Mapping[str, str] | None = None) -> Deployment:
        sqlite = f"sqlite:///{tmp_path}/stoker.sqlite"
        url = sqlite if server == "sqlite" else request.getfixturevalue(server).create_database()
        deployment = Deployment(
            tmp_path,
            database_url=url,
            transport_url=rabbitmq.create_vhost(),
            backend_url=etcd.url,
            options=f"[coordination]\ngroup = {tmp_path.name}\n",
            env=dict(env or {}),
        )
        deployments.append(deployment)
        return deployment

    yield begin
    for deployment in deployments:
        deployment.stop()


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The code of the next release."""
    return next_release(tmp_path_factory.mktemp("next"))


@pytest.mark.parametrize("server", SERVERS)
def test_daemons_are_upgraded_one_after_the_other_under_load(
    make: Make, new: pathlib.Path, server: str
) -> None:
    """Upgrade as day2.md says it."""
    deployment = make(server)
    deployment.start_api()
    for daemon in [deployment.launch_conductor(host) for host in HOSTS]:
        daemon.wait_for_text(READY)
    with Load(deployment) as load:
        wait_for(lambda: load.count > 5, 60)
        assert at(deployment) == revisions.NEWEST
        deployment.manage("db", "sync", "--expand", code=new)
        assert at(deployment) == EXPANDED
        with pytest.raises(ProcessEnded, match="conductors of an older release run: one, two"):
            deployment.manage("db", "sync", "--contract", code=new)
        for host in HOSTS:
            both_work(deployment)
            assert deployment.conductors[host].stop() == 0
            restart(deployment, host, new)
        both_work(deployment)
        assert deployment.api is not None
        assert deployment.api.stop() == 0
        deployment.start_api(new)
        deployment.manage("db", "sync", "--contract", code=new)
        both_work(deployment)
    wait_all_final(deployment, 180)
    assert statuses(deployment, "stack") == {"CREATE_COMPLETE": load.count}
    assert statuses(deployment, "resource") == {"CREATE_COMPLETE": 6 * load.count}
    assert repeated(deployment) == []
    assert at(deployment) == NEWEST
    for host in HOSTS:
        assert "Traceback" not in deployment.conductors[host].text()


def restart(deployment: Deployment, host: str, code: pathlib.Path) -> None:
    """Start a conductor of another version on a host whose log begins again."""
    before = deployment.conductors[host].text().count(READY)
    daemon = deployment.launch_conductor(host, code=code)
    wait_for(lambda: daemon.text().count(READY) > before, 120, daemon.tail)


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
    """Return the objections of stoker-status: the exit code, and the details."""
    command = [BIN / "stoker-status", "--config-file", deployment.config, "upgrade", "check", "--json"]
    done = run(command)
    findings = [check_result["details"] for check_result in json.loads(done.stdout)["checks"]]
    return done.returncode, "; ".join(details for details in findings if details)


def test_daemons_do_not_start_before_the_schema_is_expanded_and_name_the_command(
    make: Make, new: pathlib.Path
) -> None:
    deployment = make("sqlite")
    daemon = deployment.launch_conductor("one", code=new)
    with pytest.raises(ProcessEnded, match="run `stoker-manage db sync --expand`, or, if no daemon of an"):
        daemon.wait_for_text(READY)
    deployment.manage("db", "sync", "--expand", code=new)
    deployment.launch_conductor("one", code=new).wait_for_text(READY)
    status, message = check(deployment)
    assert status == 1
    assert f"the database is at {EXPANDED}, of the next release: upgrade all daemons to it" in message


@dataclass(frozen=True)
class Pair:
    """Conductors that understand two versions of the messages."""

    deployment: Deployment
    old: Process
    new: Process


SLOW = {"type": "Test::Cooperative", "properties": {"seconds": 3600}}


@pytest.fixture
def pair(make: Make, new: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Both hold tasks of whatever stack is created."""
    deployment = make("postgresql", with_plugins(tmp_path_factory.mktemp("plugins")))
    deployment.manage("db", "sync", "--expand", code=new)
    deployment.start_api(new)
    daemons = deployment.launch_conductor("old"), deployment.launch_conductor("new", code=new)
    for daemon in daemons:
        daemon.wait_for_text(READY)
    return Pair(deployment, *daemons)


def begin(deployment: Deployment, name: str) -> str:
    """A stack of which each conductor that is there runs some steps."""
    resources = {f"r{number}": SLOW for number in range(64)}  # Hints of 16 each.
    path = deployment.create(name, {"heat_template_version": "2018-08-31", "resources": resources})
    of = "FROM task t JOIN stack s ON s.id = t.stack_id WHERE t.state = 'running' AND s.name = :name"
    members = f"SELECT DISTINCT t.member {of}"
    running = sum(daemon.is_running for daemon in deployment.conductors.values())
    wait_for(lambda: len(query(deployment, members, name=name)) == running, 120)
    return path


def cancelled_within(deployment: Deployment, path: str, seconds: float) -> None:
    """Cancel a stack, and wait for the end of its steps."""
    request = urllib.request.Request(
        f"{deployment.url}{path}/actions",
        data=b'{"cancel_without_rollback": null}',
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60):
        pass
    stack_id = path.rsplit("/", 1)[1]
    claimed = "SELECT count(*) FROM task WHERE stack_id = :id AND member IS NOT NULL"
    wait_for(lambda: query(deployment, claimed, id=stack_id)[0][0] == 0, seconds)


REFUSED = re.compile(r"does not support RPC version|was refused")


def pin(deployment: Deployment, version: str) -> None:
    """For the API, while it runs."""
    assert deployment.api is not None
    before = deployment.api.text().count("upgrade_levels.conductor")
    text = deployment.config.read_text().partition("[upgrade_levels]")[0]
    deployment.config.write_text(f"{text}[upgrade_levels]\nconductor = {version}\n")
    deployment.api.send(signal.SIGHUP)
    api = deployment.api
    wait_for(lambda: api.text().count("upgrade_levels.conductor") > before, 60)


def test_conductors_that_understand_other_messages_work_together(pair: Pair) -> None:
    deployment = pair.deployment
    cancelled_within(deployment, begin(deployment, "both"), 10)
    rows = json.loads(deployment.manage("service", "list", "-f", "json"))
    assert {row["Host"]: row["RPC"] for row in rows} == {"old": VERSION, "new": RPC}
    status, message = check(deployment)
    assert status == 1
    assert f"this release speaks RPC {VERSION}, new speaks {RPC}: they work together" in message
    pin(deployment, VERSION)
    cancelled_within(deployment, begin(deployment, "pinned"), 10)
    pin(deployment, "auto")
    assert pair.old.stop() == 0
    cancelled_within(deployment, begin(deployment, "new"), 10)
    for daemon in (pair.old, pair.new):
        assert not REFUSED.search(daemon.text())
