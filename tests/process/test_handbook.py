"""doc/handbook.md comes true: each thing that leaves a stack unfinished is brought about, explained in
the words shown, and put right by the command proposed."""

import contextlib
import json
import typing
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from harness.deployment import call
from harness.waiting import wait_for
from process.handbook import (
    HOSTS,
    QUICK,
    Stage,
    chapters,
    excerpt,
    indented,
    lines_as_shown,
    proposed,
    stage,
    template,
)

Json = typing.Any
Case = typing.ContextManager[str]
MAKE: dict[str, Callable[[Stage], Case]] = {}
"""Heading -> brings it about; gives the path of the stack that is stuck, and fixes at its end what no command
shall fix."""
ELSEWHERE = {
    "The disk of the database is full": "tests/services/db/test_engine.py: it counts as one that is away",
    "The disk of the conductors' group is full": "tests/unit/ring/test_group.py: an empty record is none",
    "No thread can be started, or memory is short": "tests/simulation/test_exhaustion.py: no claim is lost",
    "A connection to the database is half open": "tests/process/test_half_open.py: the others take over",
    "One step kills conductor after conductor": "tests/simulation/test_losses.py: the resource fails",
    "The API refuses clients": "tests/unit/cli/test_serving.py: each limit; tests/process/test_attacked.py",
    "A request asks for too much": "tests/process/test_budget.py: it is refused with the path",
    "An expression takes too long": "tests/process/test_expressions.py: the stack fails, all others go on",
    "Clocks differ": "tests/process/test_clocks.py: nothing is early or late, and each is told",
    "A row is locked": "tests/services/db/test_locks.py: all but its stack go on",
    "A key is missing": "tests/process/test_configuration.py: the upgrade check names it; the stack fails",
    "The schema is older than the code": "tests/process/test_configuration.py: nothing starts before db sync",
    "A quota is reached": "tests/cloud/test_cinder_updates.py: it waits, and ends once the quota is raised",
    "A thing is still in use": "tests/cloud/test_cinder_updates.py: the reason names who uses it",
    "A name is not found": "tests/cloud/test_nova_server.py: wrong names of all kinds",
    "The cloud has no such service": "tests/cloud/test_request_checks.py: the type is refused",
    "A thing went to status ERROR": (
        "tests/unit/resources/openstack/nova/test_server_rules.py: the fault is the reason"
    ),
    "A stack in another region or cloud fails": "tests/deploy/test_regions.py: the reason names the place",
    "The stack has no credential": "tests/simulation/test_delegation.py: the step fails with that reason",
}
"""Chapters that leave no stack unfinished, or none that could be inspected."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("handbook")) as staged:
        yield staged


def case(heading: str) -> Callable[[Callable[[Stage], Iterator[str]]], None]:
    """Register what brings a chapter's trouble about."""

    def register(function: Callable[[Stage], Iterator[str]]) -> None:
        MAKE[heading] = contextlib.contextmanager(function)

    return register


def id_of(path: str) -> str:
    return path.rsplit("/", 1)[1]


def until_it_may_hang(scene: Stage, path: str) -> None:
    wait_for(lambda: "call" in scene.causes(id_of(path)), 60, lambda: scene.inspect(id_of(path)))


@case("A conductor is killed")
def _killed(scene: Stage) -> Iterator[str]:
    path = scene.hang("killed")
    scene.deployment.conductors[scene.holder(id_of(path))].kill()
    yield path


@case("A conductor is frozen or cut off")
def _frozen(scene: Stage) -> Iterator[str]:
    path = scene.hang("frozen")
    daemon = scene.deployment.conductors[scene.holder(id_of(path))]
    daemon.pause()
    yield path
    daemon.resume()
    daemon.kill()  # Its thread hangs for long.


@case("A step hangs in a call")
def _hangs(scene: Stage) -> Iterator[str]:
    path = scene.hang("hangs")
    until_it_may_hang(scene, path)
    yield path


@case("A cancel is not answered")
def _cancel(scene: Stage) -> Iterator[str]:
    path = scene.hang("cancel")
    body = {"template": template(disk=scene.hanging(seconds=0))}
    assert scene.deployment.call("PUT", path, body)[0] == 202
    yield path


@case("Threads are detached")
def _written_off(scene: Stage) -> Iterator[str]:
    for host in HOSTS:
        scene.restart(host)
    expected = len(list(scene.things.glob("*.external"))) + 2
    path = scene.deployment.create("written-off", template(disk=scene.hanging(), other=scene.hanging()))
    wait_for(lambda: len(list(scene.things.glob("*.external"))) == expected, 60)
    assert scene.manage("stack", "retry", id_of(path), "--resource", "disk").code == 0
    lost = "SELECT max(threads_written_off) FROM conductor"
    wait_for(lambda: scene.query(lost)[0][0] == 1, 60)
    yield path


@case("All threads are busy")
def _busy(scene: Stage) -> Iterator[str]:
    for host in HOSTS:
        scene.deployment.conductors[host].kill()
    scene.restart(HOSTS[0])
    expected = len(list(scene.things.glob("*.external"))) + 2
    scene.deployment.create("hogs", template(a=scene.hanging(), b=scene.hanging()))
    wait_for(lambda: len(list(scene.things.glob("*.external"))) == expected, 60)
    path = scene.deployment.create("busy", template(quick=QUICK))
    wait_for(lambda: "threads" in scene.causes(id_of(path)), 60, lambda: scene.inspect(id_of(path)))
    yield path


@case("A step waits for its next try")
def _retry(scene: Stage) -> Iterator[str]:
    again = {"type": "Test::Flaky", "properties": {"directory": str(scene.things), "after": 3000}}
    path = scene.deployment.create("retry", template(again=again))
    wait_for(lambda: "retry" in scene.causes(id_of(path)), 60)
    yield path


@case("Hints are lost")
def _hints(scene: Stage) -> Iterator[str]:
    status, answer = call(
        scene.other_api(), "POST", "/v1/t/stacks", {"stack_name": "hints", "template": template(quick=QUICK)}
    )
    assert status == 201
    stack_id = answer["stack"]["id"]
    engine = sa.create_engine(scene.deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        # The owner passes over what is locked: else it might send the hint before anybody has read it.
        locked = conn.execute(
            sa.text("SELECT id FROM task WHERE stack_id = :stack AND state = 'ready' FOR UPDATE"),
            {"stack": stack_id},
        ).all()
        assert len(locked) == 1

        def let_go() -> None:
            later = "UPDATE task SET due_at = due_at + 300 WHERE id = :id"
            conn.execute(sa.text(later), {"id": locked[0][0]})
            conn.commit()

        scene.before_commands = let_go
        yield f"/v1/t/stacks/hints/{stack_id}"


@case("The message bus is unavailable")
def _bus(scene: Stage) -> Iterator[str]:
    scene.broker.kill()
    scene.away = (scene.broker, "transport_url")
    path = scene.deployment.create("bus", template(quick=QUICK))
    wait_for(lambda: "bus" in scene.causes(id_of(path)), 60, lambda: scene.inspect(id_of(path)))
    yield path


@case("The database is unavailable")
def _database(scene: Stage) -> Iterator[str]:
    path = scene.deployment.create("database", template(slow=QUICK | {"properties": {"wait_secs": 5}}))
    scene.postgres.kill()
    try:
        yield path
    finally:
        scene.postgres.start()


@case("The coordination backend is unavailable")
def _coordination(scene: Stage) -> Iterator[str]:
    path = scene.hang("coordination")
    # At first they continue, and report; a report that is late would look like silence.
    counts = {host: scene.departures(host) for host in HOSTS}
    scene.etcd.kill()
    scene.away = (scene.etcd, "[coordination] backend_url")
    wait_for(lambda: all(scene.departures(host) > counts[host] for host in HOSTS), 60)
    yield path


@case("All conductors are gone")
def _no_conductors(scene: Stage) -> Iterator[str]:
    for host in HOSTS:
        scene.deployment.conductors[host].kill()
    path = scene.deployment.create("gone", template(quick=QUICK))
    yield path


@case("A breakpoint is forgotten")
def _breakpoint(scene: Stage) -> Iterator[str]:
    hooks = {"resource_registry": {"resources": {"quick": {"hooks": "pre-create"}}}}
    path = scene.deployment.create("breakpoint", template(quick=QUICK), environment=hooks)
    held = "SELECT 1 FROM task WHERE stack_id = :stack AND state = 'held'"
    wait_for(lambda: bool(scene.query(held, stack=id_of(path))), 60)
    yield path


@case("A signal never comes")
def _signal(scene: Stage) -> Iterator[str]:
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    waits = {"handle": {"get_resource": "handle"}, "timeout": 3000}
    wait = {"type": "OS::Heat::WaitCondition", "properties": waits}
    path = scene.deployment.create("signal", template(handle=handle, wait=wait))
    wait_for(lambda: "signal" in scene.causes(id_of(path)), 60)
    yield path


@case("A nested stack is stuck")
def _nested(scene: Stage) -> Iterator[str]:
    files = {"web.yaml": json.dumps(template(disk=scene.hanging()))}
    path = scene.deployment.create("nested", template(web={"type": "web.yaml"}), files=files)
    wait_for(lambda: "call" in scene.causes(id_of(path)), 60, lambda: scene.inspect(id_of(path)))
    yield path


OFTEN = "A conductor is killed"
"""The chapter that each commit is tried on."""


@pytest.mark.parametrize(
    "heading",
    [pytest.param(heading, marks=[pytest.mark.commit] if heading == OFTEN else []) for heading in MAKE],
)
def test_stuck_stacks_are_explained_as_the_handbook_shows_and_repaired_as_proposed(
    scene: Stage, heading: str
) -> None:
    scene.whole()
    with MAKE[heading](scene) as path:
        report = scene.inspect(id_of(path))
        commands = proposed(lines_as_shown(excerpt(heading), report))
        if heading == "The database is unavailable":
            assert not commands
            scene.postgres.start()
        else:
            assert commands, indented(report)
            assert scene.show_status(path).endswith("IN_PROGRESS"), "it is stuck"
        scene.before_commands()
        for command in commands:
            scene.run(command)
        final = scene.deployment.wait_final(path)
        assert final["stack_status"].endswith("_COMPLETE"), final["stack_status_reason"]


def test_a_stack_is_failed_by_hand_and_updated_then(scene: Stage) -> None:
    scene.whole()
    path = scene.hang("failed")
    done = scene.manage("stack", "fail", "failed", "--reason", "it was a mistake")
    assert done.code == 0, done
    assert f"stack failed ({id_of(path)}) is CREATE_FAILED: it was a mistake" in done.output
    assert "disk: its step on c-" in done.output
    assert scene.deployment.show(path)["stack_status_reason"] == "it was a mistake"
    report = scene.inspect(id_of(path))
    assert "! it was a mistake" in report
    assert f"sooner: openstack stack update --existing {id_of(path)}" in report
    again = scene.manage("stack", "fail", id_of(path))
    assert again.code == 1
    assert (
        "stack failed is CREATE_FAILED: it does nothing; to continue: openstack stack update" in again.output
    )
    body = {"template": template(disk=scene.hanging(seconds=0))}
    assert scene.deployment.call("PUT", path, body)[0] == 202
    assert scene.deployment.wait_final(path)["stack_status"] == "UPDATE_COMPLETE"


def test_a_stack_is_failed_and_deleted_while_no_conductor_runs(scene: Stage) -> None:
    scene.whole()
    path = scene.hang("nobody")
    for host in HOSTS:
        scene.deployment.conductors[host].kill()
    done = scene.manage("stack", "fail", id_of(path))
    assert done.code == 0, done
    assert scene.show_status(path) == "CREATE_FAILED"
    assert scene.deployment.call("DELETE", path)[0] == 204
    retried = scene.manage("stack", "retry", id_of(path))
    assert "no conductor is alive: the work is done when one is back" in retried.output
    scene.restart(HOSTS[0])
    assert scene.deployment.wait_final(path)["stack_status"] == "DELETE_COMPLETE"


@pytest.mark.commit
def test_no_chapter_is_forgotten() -> None:
    assert set(chapters()) == MAKE.keys() | ELSEWHERE.keys()
    assert not MAKE.keys() & ELSEWHERE.keys()


@pytest.mark.commit
def test_an_excerpt_that_differs_is_found() -> None:
    with pytest.raises(AssertionError, match="is not in its place"):
        lines_as_shown(["a …", "  why: b"], "a 1\n  why: c\n")
    assert lines_as_shown(["a …", "  why: b"], "x\na 1\ny\n  why: b\n") == ["a 1", "  why: b"]
