"""Stacks at breakpoints while every process dies."""

import concurrent.futures
import pathlib
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment, Servers
from harness.listening import Heard, Json, listening
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from oslo_config import cfg
from stoker.cli.config import options

HOSTS = ("one", "two")
COUNT = 24
HOOKS = {
    "resource_registry": {"resources": {"l0_0": {"hooks": "post-create"}, "l1_*": {"hooks": "pre-create"}}}
}


@pytest.fixture
def notified(rabbitmq: RabbitMQ) -> str:
    """Where the notifications go."""
    return rabbitmq.create_vhost()


@pytest.fixture
def heard(notified: str) -> Iterator[Heard]:
    cfg.CONF.reset()
    with listening(options.load([], program="test", files=[]), notified) as listener:
        yield listener
    cfg.CONF.reset()


@pytest.fixture
def deployment(tmp_path: pathlib.Path, servers: Servers, notified: str) -> Iterator[Deployment]:
    started = servers.deployment(
        tmp_path,
        f"[oslo_messaging_notifications]\ndriver = messagingv2\ntransport_url = {notified}\n",
    )
    started.start_api()
    started.start_conductors(*HOSTS)
    yield started
    started.stop()


def counted(deployment: Deployment, sql: str) -> int:
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        return int(conn.execute(sa.text(sql)).scalar_one())


def wait_heard(heard: Heard, event: str, count: int) -> list[Json]:
    """Return the payloads of an event as soon as there are so many."""
    notifications = lambda: heard.of(f"orchestration.{event}")  # noqa: E731
    wait_for(lambda: len(notifications()) >= count, 60, lambda: f"{event}: {len(notifications())}")
    return notifications()


def test_all_conductors_are_killed_while_stacks_are_held_and_every_stack_completes(
    deployment: Deployment, heard: Heard
) -> None:
    template = templates.layered(2, 3)

    def create(number: int) -> str:
        return deployment.create(f"s{number}", template, environment=HOOKS)

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        paths = list(clients.map(create, range(COUNT)))
    at_rest = (
        "SELECT count(*) FROM stack WHERE status = 'IN_PROGRESS' AND remaining > 0 AND deadline_at IS NULL"
    )
    wait_for(lambda: counted(deployment, at_rest) == COUNT, 60, lambda: str(counted(deployment, at_rest)))
    active = "SELECT count(*) FROM task WHERE state IN ('running', 'ready', 'parked')"
    assert counted(deployment, active) == 0
    busy = "SELECT coalesce(sum(threads_busy), 0) FROM conductor"  # As reported, once a second.
    wait_for(lambda: counted(deployment, busy) == 0, 60, lambda: str(counted(deployment, busy)))
    for event in ("breakpoint.reached", "stack.create.start"):  # What is not sent yet would die with them.
        wait_heard(heard, event, COUNT)
    for host in HOSTS:
        deployment.conductors[host].kill()
    assert deployment.api is not None
    deployment.api.kill()
    time.sleep(1)
    deployment.start_api()
    deployment.start_conductors(*HOSTS)
    assert counted(deployment, at_rest) == COUNT

    def go_on(path: str) -> None:
        while True:
            status, answer = deployment.call("POST", f"{path}/actions", {"continue": None})
            if status == 200:
                continue
            assert answer["error"]["type"] == "InvalidBreakPointHook"
            if deployment.show(path)["stack_status"] != "CREATE_IN_PROGRESS":
                return
            time.sleep(0.2)

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        list(clients.map(go_on, paths))
    complete = "SELECT count(*) FROM stack WHERE action = 'CREATE' AND status = 'COMPLETE'"
    assert counted(deployment, complete) == COUNT
    for reason in ("CREATE paused until Hook pre-create is cleared", "Hook pre-create is cleared"):
        statement = f"SELECT count(*) FROM event WHERE reason = '{reason}'"
        assert counted(deployment, statement) == 3 * COUNT, "each once"
    for event in ("breakpoint.reached", "breakpoint.cleared", "stack.create.start", "stack.create.end"):
        count = COUNT if event.startswith("stack") else 4 * COUNT
        payloads = wait_heard(heard, event, count)
        assert len({str(payload) for payload in payloads}) == len(payloads) == count, "each once"
