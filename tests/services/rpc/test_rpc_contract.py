"""The promises of the message bus, on each of its kinds: inside of a process, and RabbitMQ."""

import itertools
import logging
import threading
import typing
from collections.abc import Iterator, Mapping, Sequence

import oslo_messaging
import pytest
from harness.counting import Counting
from harness.next_messages import speak_next
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from oslo_config import cfg
from stoker.cli.config import options
from stoker.db.ids import TaskId, TraversalId
from stoker.observe import metrics
from stoker.observe.logs import about
from stoker.rpc.bus import Bus, OsloBus, open_bus, open_transport
from stoker.rpc.client import OsloSender
from stoker.rpc.contract import WORK_TOPIC, Hint
from stoker.rpc.level import Level
from stoker.rpc.local import LocalBus
from stoker.rpc.outbox import Outbox

OLD = TraversalId("old")
NEW = TraversalId("new")
_names = itertools.count(1)


class Receiver:
    """Records its notifications."""

    def __init__(self) -> None:
        self.messages: list[object] = []

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        self.messages += [(traversal, list(task_ids)) for traversal, task_ids in ready.items()]

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId], request: str | None) -> None:
        self.messages.append((traversal, "but", list(spared), *([request] if request else [])))

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        self.messages.append(("stop", list(claims)))

    def poll_now(self) -> None:
        self.messages.append("look")


@pytest.fixture(scope="module")
def configuration() -> cfg.ConfigOpts:
    return options.load([], program="test", files=[])


@pytest.fixture(params=["local", "rabbit"])
def bus(request: pytest.FixtureRequest, configuration: cfg.ConfigOpts) -> Iterator[Bus]:
    if request.param == "local":
        yield LocalBus()
        return
    rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
    rabbit_bus = open_bus(configuration, rabbitmq.create_vhost())
    yield rabbit_bus
    rabbit_bus.close()


@pytest.fixture
def pair(bus: Bus) -> Iterator[tuple[Receiver, Receiver]]:
    """Two that listen."""
    receivers = (Receiver(), Receiver())
    servers = [bus.listen(f"host{next(_names)}", receiver) for receiver in receivers]
    for server in servers:
        server.start()
    yield receivers
    for server in servers:
        server.stop()


def test_a_hint_reaches_exactly_one_and_all_get_their_share(
    bus: Bus, pair: tuple[Receiver, Receiver]
) -> None:
    bus.poll_now()
    for receiver in pair:  # Both listen now: else the first gets the share of one that begins late.
        wait_for(lambda messages=receiver.messages: messages == ["look"], 60)  # type: ignore[misc]
        receiver.messages.clear()
    sent = [(NEW, [number]) for number in range(20)]
    for traversal, task_ids in sent:
        bus.run_tasks(traversal, [TaskId(i) for i in task_ids])
    wait_for(lambda: sum(len(receiver.messages) for receiver in pair) >= 20, 60)
    assert sorted(map(str, [*pair[0].messages, *pair[1].messages])) == sorted(map(str, sent))
    assert min(len(receiver.messages) for receiver in pair) >= 5


def test_a_cancel_and_a_call_to_look_reach_all(bus: Bus, pair: tuple[Receiver, Receiver]) -> None:
    bus.cancel(OLD, [TaskId(3)])
    bus.poll_now()
    for receiver in pair:
        wait_for(lambda messages=receiver.messages: len(messages) == 2, 60)  # type: ignore[misc]
        assert sorted(map(str, receiver.messages)) == ["('old', 'but', [3])", "look"]


def test_a_member_that_has_stopped_gets_no_more_changes(bus: Bus, pair: tuple[Receiver, Receiver]) -> None:
    stopped = Receiver()
    server = bus.listen("gone", stopped)
    server.start()
    server.stop()
    for number in range(12):
        bus.run_tasks(NEW, [TaskId(number)])
    bus.cancel(OLD)
    wait_for(lambda: sum(len(receiver.messages) for receiver in pair) == 14, 60)
    assert stopped.messages == []


def test_sending_to_nobody_is_no_error(bus: Bus) -> None:
    bus.run_tasks(NEW, [TaskId(1)])
    bus.cancel(OLD)


def test_the_outbox_never_makes_its_caller_wait() -> None:
    stuck = threading.Event()
    began = threading.Event()

    class Slow:
        def send(self, hint: Hint) -> None:
            if hint.method == "cancel":
                raise RuntimeError("broken")
            began.set()
            stuck.wait(600)

    outbox = Outbox(Slow())
    outbox.start()
    outbox.run_tasks(NEW, [TaskId(1)])
    assert began.wait(120)
    for number in range(11_000):
        outbox.run_tasks(NEW, [TaskId(number)])
    outbox.cancel(OLD)
    stuck.set()
    outbox.stop(120)


class Hearing(typing.NamedTuple):
    """A conductor on a broker, and a client that can send whatever."""

    receiver: Receiver
    client: typing.Any
    transport: oslo_messaging.Transport
    counting: Counting


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> None:
    speak_next(monkeypatch)


@pytest.fixture
def hearing(configuration: cfg.ConfigOpts, rabbitmq: RabbitMQ) -> Iterator[Hearing]:
    transport = open_transport(configuration, rabbitmq.create_vhost())
    receiver = Receiver()
    counting = Counting()
    server = OsloBus(transport, counting).listen("one", receiver)
    server.start()
    target = oslo_messaging.Target(topic=WORK_TOPIC)
    yield Hearing(receiver, oslo_messaging.get_rpc_client(transport, target), transport, counting)
    server.stop()
    transport.cleanup()


def test_what_is_sent_keeps_to_the_version_that_all_understand(next_release: None, hearing: Hearing) -> None:
    spoken = ["1.0"]
    level = Level(lambda: spoken)
    sender = OsloSender(hearing.transport, level=level)
    sender.cancel(OLD, [TaskId(1)], "req-1")
    spoken[:] = ["1.1"]
    level.reset()
    sender.cancel(OLD, [TaskId(2)], "req-1")
    sender.cancel(OLD, [TaskId(3)])
    OsloSender(hearing.transport).cancel(OLD, [TaskId(4)], "req-1")
    wait_for(lambda: len(hearing.receiver.messages) == 4, 60)
    assert hearing.receiver.messages == [
        (OLD, "but", [1]),
        (OLD, "but", [2], "req-1"),
        (OLD, "but", [3]),
        (OLD, "but", [4]),
    ]


def test_a_version_that_is_not_understood_is_refused_with_what_to_do(
    hearing: Hearing, caplog: pytest.LogCaptureFixture
) -> None:
    for version, method in (("1.1", "cancel"), ("1.1", "cancel"), ("2.0", "run_tasks"), ("1.0", "run_tasks")):
        arguments = {"tasks": {NEW: [1]}} if method == "run_tasks" else {"traversal": OLD}
        hearing.client.prepare(version=version).cast({}, method, **arguments)

    def errors() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]

    refused = lambda method: hearing.counting.of(metrics.HINTS_REFUSED, method)  # noqa: E731
    wait_for(lambda: len(hearing.receiver.messages) == 1, 60)
    wait_for(lambda: [refused("cancel"), refused("run_tasks")] == [2, 1], 60)
    wait_for(lambda: len(errors()) == 2, 60)
    assert hearing.receiver.messages == [(NEW, [1])]
    lines = errors()
    assert [line.partition(": ")[0] for line in lines] == [
        "A message (cancel) of version 1.1 was refused, this conductor understands 1.0",
        "A message (run_tasks) of version 2.0 was refused, this conductor understands 1.0",
    ]
    assert "pin what the others send by [upgrade_levels] conductor" in lines[0]


def test_a_message_in_a_wrong_form_is_refused_and_the_next_one_is_taken(
    hearing: Hearing, caplog: pytest.LogCaptureFixture
) -> None:
    for tasks in ("1", [1.5], [1]):
        hearing.client.cast({}, "run_tasks", tasks={NEW: tasks})
    wait_for(lambda: len(hearing.receiver.messages) == 1, 60)
    wait_for(lambda: hearing.counting.of(metrics.HINTS_REFUSED, "run_tasks") == 2, 60)
    assert hearing.receiver.messages == [(NEW, [1])]
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.startswith("A message (run_tasks) was refused: tasks and claims are lists")


def test_the_outbox_tells_whose_request_it_is() -> None:
    messages: list[object] = []

    class Channel:
        def send(self, hint: Hint) -> None:
            messages.append(tuple(hint.arguments.values()))

    outbox = Outbox(Channel())
    outbox.start()
    outbox.cancel(OLD)
    with about(request="req-1"):
        outbox.cancel(NEW, [TaskId(1)])
    assert outbox.stop(120)
    assert messages == [(OLD, [], None), (NEW, [1], "req-1")]
