"""Polls: pauses that grow, values that steps share, and one list in place of many calls."""

import threading
import typing
from collections.abc import Callable, Hashable, Iterator

import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from harness.waiting import wait_for
from keystoneauth1.adapter import Adapter
from stoker.conductor.steps.shared_reads import IDLE, MOST, SharedReads
from stoker.resources.contract.context import StepContext
from stoker.resources.openstack.polling import (
    FEW,
    FIRST_PAUSE,
    FORGOTTEN,
    LONGEST_PAUSE,
    SMALL_PART,
    STEADY_PAUSE,
    Poller,
    pause,
)
from stoker.resources.openstack.service import RemoteNotFound, Service

Json = typing.Any
T = typing.TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class PollContext:
    """The part of a step's context that polls need, on a clock that tests move."""

    def __init__(self, scripted: ScriptedService) -> None:
        self.clock = Clock()
        self._reads = SharedReads(self.clock)
        self._scripted = scripted

    def adapter(self, service: str, version: str, microversion: str | None = None) -> Adapter:
        return self._scripted.adapter(service)

    def now(self) -> float:
        return self.clock.now

    def shared(self, key: Hashable, make: Callable[[], T], max_age: float) -> T:
        return self._reads.get(key, make, max_age)


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


def test_pauses_grow() -> None:
    assert pause(100.0, 100.0) == FIRST_PAUSE
    assert pause(100.0, 99.0) == FIRST_PAUSE
    assert pause(100.0, 101.5) == FIRST_PAUSE
    assert pause(100.0, 116.0) == 2.0
    assert pause(100.0, 116.0, SMALL_PART) == 1.0
    assert pause(100.0, 1000.0) == LONGEST_PAUSE


def test_a_value_is_kept_for_its_age() -> None:
    clock = Clock()
    reads = SharedReads(clock)
    values = iter(range(10))
    assert [reads.get("key", lambda: next(values), 5.0) for _ in range(3)] == [0, 0, 0]
    assert reads.get("other", lambda: next(values), 5.0) == 1
    clock.now += 5.0
    assert reads.get("key", lambda: next(values), 5.0) == 0
    assert reads.get("key", lambda: next(values), 4.0) == 2
    clock.now += 5.1
    assert reads.get("key", lambda: next(values), 5.0) == 3


def test_a_value_that_is_forgotten_is_made_again() -> None:
    reads = SharedReads(Clock())
    values = iter(range(10))
    reads.forget("key")
    assert reads.get("key", lambda: next(values), 5.0) == 0
    reads.forget("key")
    assert reads.get("key", lambda: next(values), 5.0) == 1


def test_a_value_that_cannot_be_made_is_made_by_the_next() -> None:
    reads = SharedReads(Clock())

    def fail() -> int:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        reads.get("key", fail, 5.0)
    assert reads.get("key", lambda: 1, 5.0) == 1


def test_values_used_last_are_kept() -> None:
    reads = SharedReads(Clock())
    for number in range(MOST):
        reads.get(number, lambda: "old", 5.0)
    reads.get(0, lambda: "new", 5.0)
    reads.get("one more", lambda: "old", 5.0)
    assert reads.get(0, lambda: "new", 5.0) == "old"
    assert reads.get(1, lambda: "new", 5.0) == "new"


def test_a_value_that_no_step_uses_is_dropped() -> None:
    clock = Clock()
    reads = SharedReads(clock)
    for key in ("unused", "used"):
        reads.get(key, lambda: "old", 5.0)
    for _ in range(3):
        clock.now += IDLE / 2
        assert reads.get("used", lambda: "new", 10 * IDLE) == "old"
    assert reads.get("unused", lambda: "new", 10 * IDLE) == "new"


def test_one_thread_makes_a_value_and_the_others_wait_for_the_first() -> None:
    reads = SharedReads(Clock())
    begun = threading.Event()
    finish = threading.Event()
    calls: list[str] = []

    def slowly() -> str:
        calls.append("made")
        begun.set()
        assert finish.wait(30)
        return f"value {len(calls)}"

    values: list[str] = []
    threads = [
        threading.Thread(target=lambda: values.append(reads.get("key", slowly, 5.0))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    assert values == []
    finish.set()
    for thread in threads:
        thread.join(30)
    assert (values, calls) == (["value 1"] * 4, ["made"])


def test_the_value_before_is_served_while_a_new_one_is_made() -> None:
    clock = Clock()
    begun = threading.Event()
    finish = threading.Event()
    reads = SharedReads(clock)
    reads.get("key", lambda: "old", 5.0)
    clock.now += 10

    def slowly() -> str:
        begun.set()
        assert finish.wait(30)
        return "new"

    thread = threading.Thread(target=lambda: reads.get("key", slowly, 5.0))
    thread.start()
    assert begun.wait(30)
    assert reads.get("key", lambda: "never", 5.0) == "old"
    finish.set()
    thread.join(30)
    assert reads.get("key", lambda: "never", 5.0) == "new"


def _serve_volumes(scripted: ScriptedService, count: int, status: str = "creating") -> None:
    volumes = [{"id": f"v{number}", "status": status} for number in range(count)]
    scripted.answers["GET /volumes/detail?limit=1000"] = Answer(200, {"volumes": volumes})
    for volume in volumes:
        scripted.answers[f"GET /volumes/{volume['id']}"] = Answer(200, {"volume": volume})


class Polls:
    """Polls of volumes of one project."""

    def __init__(self, scripted: ScriptedService) -> None:
        self.context = PollContext(scripted)
        self.service = Service(scripted.adapter("block-storage"))
        self.poller = Poller("/volumes/detail", "volumes", lambda _: ({},))

    def read(self, physical_id: str, since: float) -> Json:
        context = typing.cast(StepContext, self.context)
        get = lambda: self.service.get(f"/volumes/{physical_id}")["volume"]  # noqa: E731
        return self.poller.read(context, self.service, physical_id, get, since)


def test_few_things_are_read_one_by_one(scripted: ScriptedService) -> None:
    _serve_volumes(scripted, FEW)
    polls = Polls(scripted)
    for number in range(FEW):
        assert polls.read(f"v{number}", 900.0)["status"] == "creating"
    assert scripted.requests == [f"GET /volumes/v{number}" for number in range(FEW)]


def test_many_things_are_read_by_one_list(scripted: ScriptedService) -> None:
    _serve_volumes(scripted, 200)
    polls = Polls(scripted)
    for number in range(200):
        polls.read(f"v{number}", 900.0)
    assert len(scripted.requests) == FEW + 1
    for _ in range(5):
        scripted.requests.clear()
        polls.context.clock.now += STEADY_PAUSE + 0.1
        for number in range(200):
            assert polls.read(f"v{number}", 900.0)["id"] == f"v{number}"
        assert scripted.requests == ["GET /volumes/detail?limit=1000"]


def _slow_lists(monkeypatch: pytest.MonkeyPatch, polls: Polls) -> None:
    """Let each list take two seconds."""
    list_all = Service.list_all

    def slowly(service: Service, path: str, items: str, **query: str | int | bool) -> list[Json]:
        polls.context.clock.now += 2.0
        return list_all(service, path, items, **query)

    monkeypatch.setattr(Service, "list_all", slowly)


def test_things_begun_after_a_slow_list_wait_for_the_next(
    scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them costs a request of its own."""
    _serve_volumes(scripted, 200)
    polls = Polls(scripted)
    _slow_lists(monkeypatch, polls)
    for number in range(10):
        polls.read(f"v{number}", 900.0)
    began = polls.context.now()
    scripted.requests.clear()
    polls.context.clock.now += 1.0
    assert [polls.read(f"v{number}", began) for number in range(10, 200)] == [None] * 190
    assert scripted.requests == []
    polls.context.clock.now += 5.5
    for number in range(10, 200):
        assert polls.read(f"v{number}", began)["id"] == f"v{number}"
    assert scripted.requests == ["GET /volumes/detail?limit=1000"]


def test_a_slow_list_is_read_less_often(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    _serve_volumes(scripted, 10)
    polls = Polls(scripted)
    _slow_lists(monkeypatch, polls)
    for number in range(10):
        polls.read(f"v{number}", 900.0)
    for passed, lists in ((5.5, 0), (1.0, 1)):
        scripted.requests.clear()
        polls.context.clock.now += passed
        polls.read("v1", 900.0)
        assert len(scripted.requests) == lists


def test_a_thing_that_no_list_has_is_read_alone(scripted: ScriptedService) -> None:
    _serve_volumes(scripted, 10)
    polls = Polls(scripted)
    for number in range(10):
        polls.read(f"v{number}", 900.0)
    scripted.answers["GET /volumes/late"] = Answer(200, {"volume": {"id": "late"}})
    assert polls.read("late", 900.0) == {"id": "late"}
    with pytest.raises(RemoteNotFound):
        polls.read("gone", 900.0)


def test_a_list_older_than_the_action_does_not_count(scripted: ScriptedService) -> None:
    """An action began after the list was read: what the list has is the state before."""
    _serve_volumes(scripted, 10, "available")
    polls = Polls(scripted)
    for number in range(10):
        polls.read(f"v{number}", 900.0)
    _serve_volumes(scripted, 10, "extending")
    polls.context.clock.now += 0.1
    began = polls.context.now()
    assert polls.read("v9", began) is None
    assert polls.read("v8", 900.0)["status"] == "available"
    polls.context.clock.now += STEADY_PAUSE
    assert polls.read("v9", began)["status"] == "extending"


def test_what_has_ended_or_is_not_polled_any_more_does_not_count(scripted: ScriptedService) -> None:
    _serve_volumes(scripted, FEW + 2)
    polls = Polls(scripted)
    for number in range(FEW + 2):
        polls.read(f"v{number}", 900.0)
    for number in (0, 1):
        polls.poller.forget(typing.cast(StepContext, polls.context), polls.service, f"v{number}")
    scripted.requests.clear()
    polls.context.clock.now += 1
    polls.read("v2", 900.0)
    assert scripted.requests == ["GET /volumes/v2"]
    polls.read("v0", 900.0)
    polls.context.clock.now += FORGOTTEN
    scripted.requests.clear()
    polls.read("v1", 900.0)
    assert scripted.requests == ["GET /volumes/v1"]


def test_threads_share_one_list(scripted: ScriptedService) -> None:
    _serve_volumes(scripted, 20)
    polls = Polls(scripted)
    for number in range(20):
        polls.read(f"v{number}", 900.0)
    scripted.requests.clear()
    polls.context.clock.now += STEADY_PAUSE + 0.1
    threads = [threading.Thread(target=polls.read, args=(f"v{number}", 900.0)) for number in range(20)]
    for thread in threads:
        thread.start()
    wait_for(lambda: not any(thread.is_alive() for thread in threads), 30.0, lambda: scripted.requests)
    assert scripted.requests == ["GET /volumes/detail?limit=1000"]
