"""What the message bus promises, on each of its kinds: inside of a process, and RabbitMQ."""

import itertools
import threading
from collections.abc import Iterator, Sequence

import pytest
from harness.rabbitmq import RabbitMQ
from harness.waiting import wait_for
from oslo_config import cfg
from stoker.cli import options
from stoker.db.ids import TaskId, TraversalId
from stoker.rpc.bus import Bus, open_bus
from stoker.rpc.local import LocalBus
from stoker.rpc.outbox import Outbox

OLD, NEW = TraversalId("old"), TraversalId("new")
_names = itertools.count(1)


class Receiver:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def offer(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        self.told.append((traversal, list(task_ids)))

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId]) -> None:
        self.told.append((traversal, "but", list(spared)))

    def stop_tasks(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        self.told.append(("stop", list(claims)))

    def look_now(self) -> None:
        self.told.append("look")


@pytest.fixture(scope="module")
def configuration() -> cfg.ConfigOpts:
    return options.load([], program="test", files=[])


@pytest.fixture(params=["local", "rabbit"])
def bus(request: pytest.FixtureRequest, configuration: cfg.ConfigOpts) -> Iterator[Bus]:
    if request.param == "local":
        yield LocalBus()
        return
    rabbitmq: RabbitMQ = request.getfixturevalue("rabbitmq")
    made = open_bus(configuration, rabbitmq.create_vhost())
    yield made
    made.close()


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
    sent = [(NEW, [number]) for number in range(20)]
    for traversal, task_ids in sent:
        bus.run_tasks(traversal, [TaskId(i) for i in task_ids])
    wait_for(lambda: sum(len(receiver.told) for receiver in pair) >= 20, 10)
    assert sorted(map(str, [*pair[0].told, *pair[1].told])) == sorted(map(str, sent))
    assert min(len(receiver.told) for receiver in pair) >= 5


def test_a_cancel_and_a_call_to_look_reach_all(bus: Bus, pair: tuple[Receiver, Receiver]) -> None:
    bus.cancel(OLD, [TaskId(3)])
    bus.look_now()
    for receiver in pair:
        wait_for(lambda told=receiver.told: len(told) == 2, 10)  # type: ignore[misc]
        assert sorted(map(str, receiver.told)) == ["('old', 'but', [3])", "look"]


def test_who_has_stopped_is_told_nothing_more(bus: Bus, pair: tuple[Receiver, Receiver]) -> None:
    gone = Receiver()
    server = bus.listen("gone", gone)
    server.start()
    server.stop()
    for number in range(12):
        bus.run_tasks(NEW, [TaskId(number)])
    bus.cancel(OLD)
    wait_for(lambda: sum(len(receiver.told) for receiver in pair) == 14, 10)
    assert gone.told == []


def test_sending_to_nobody_is_no_error(bus: Bus) -> None:
    bus.run_tasks(NEW, [TaskId(1)])
    bus.cancel(OLD)


def test_the_outbox_never_makes_its_caller_wait() -> None:
    stuck, began = threading.Event(), threading.Event()

    class Slow:
        def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
            began.set()
            stuck.wait(30)

        def cancel(self, traversal: TraversalId, spared: Sequence[TaskId]) -> None:
            raise RuntimeError("broken")

    outbox = Outbox(Slow())
    outbox.start()
    outbox.run_tasks(NEW, [TaskId(1)])
    assert began.wait(5)
    for number in range(11_000):
        outbox.run_tasks(NEW, [TaskId(number)])
    outbox.cancel(OLD)
    stuck.set()
    outbox.stop(5)
