"""Reads that requests share: who reads, and who gets the value before."""

import threading
import typing
from collections.abc import Iterator

import pytest
from harness.waiting import wait_for
from stoker.api.shared_views import IDLE_FACTOR, MOST_ENTRIES, SharedViews

KEEP = 1.0


class Reads:
    """Views of one value on a clock that tests move; a read waits until it may end."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.reads = 0
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        self.views: SharedViews[int] = SharedViews(keep=KEEP, monotonic=lambda: self.now)
        self._threads: list[threading.Thread] = []

    def get(self) -> int:
        return self.views.get("key", self._read)

    def _read(self, before: int | None) -> int:
        self.begun.set()
        assert self.may_end.wait(60)
        self.reads += 1
        return self.reads

    def on_thread(self) -> list[int]:
        """Get the value on a thread; the list gets it."""
        reads: list[int] = []
        self._threads.append(threading.Thread(target=lambda: reads.append(self.get())))
        self._threads[-1].start()
        return reads

    def close(self) -> None:
        self.may_end.set()
        for thread in self._threads:
            thread.join(60)


@pytest.fixture
def reads() -> Iterator[Reads]:
    source = Reads()
    yield source
    source.close()


def test_a_value_is_kept_for_its_time(reads: Reads) -> None:
    assert [reads.get(), reads.get()] == [1, 1]
    reads.now += KEEP
    assert reads.get() == 2


def test_a_long_read_is_kept_longer() -> None:
    now = [1000.0]
    views: SharedViews[float] = SharedViews(keep=KEEP, monotonic=lambda: now[0])

    def slowly(before: float | None) -> float:
        now[0] += 2.0
        return now[0]

    first = views.get("key", slowly)
    now[0] += 2.0 * IDLE_FACTOR - 0.1
    assert views.get("key", slowly) == first
    now[0] += 0.1
    assert views.get("key", slowly) > first


@pytest.mark.parametrize(("age", "expected"), [(1.5 * KEEP, 1), (3600.0, 2)])
def test_a_value_is_returned_while_it_is_read_again_unless_it_is_old(
    reads: Reads, age: float, expected: int
) -> None:
    assert reads.get() == 1
    reads.now += age
    reads.begun.clear()
    reads.may_end.clear()
    reader = reads.on_thread()
    assert reads.begun.wait(60)
    other = reads.on_thread()
    if expected == 1:
        wait_for(lambda: other == [1])
    reads.may_end.set()
    wait_for(lambda: typing.cast(bool, reader and other))
    assert (reader, other) == ([2], [expected])


def test_a_read_that_fails_is_repeated(reads: Reads) -> None:
    def fails(before: int | None) -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        reads.views.get("key", fails)
    assert reads.get() == 1


class WeighedViews:
    """Views of texts that weigh their length, on a clock that tests move."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.weighed = 0
        self.views: SharedViews[str] = SharedViews(
            most=most, weigh=self._weigh, idle=10.0, monotonic=lambda: self.now
        )

    def _weigh(self, value: str) -> int:
        self.weighed += 1
        return len(value)

    def put(self, key: object, value: str) -> None:
        self.views.get(key, lambda before: value)

    def has(self, key: object) -> bool:
        """Return whether the value of a key is kept; if not, it is from now on."""
        return self.views.get(key, lambda before: "") != ""


def test_the_value_unused_for_longest_makes_room() -> None:
    views = WeighedViews(most=10)
    for key in "ab":
        views.put(key, "12345")
    views.put("a", "x")
    views.put("c", "1")
    assert [views.has("a"), views.has("c"), views.has("b")] == [True, True, False]


def test_a_value_that_is_too_heavy_pushes_no_others_out() -> None:
    views = WeighedViews(most=10)
    views.put("a", "1")
    views.put("b", "12345678901")
    assert [views.has("a"), views.has("b")] == [True, False]


def test_a_value_that_is_read_again_has_its_new_weight() -> None:
    views = WeighedViews(most=10)
    views.put("a", "123456")
    views.now += 3.0
    views.put("a", "12")
    views.put("b", "12345678")
    assert views.has("a")


def test_values_without_weight_are_limited_in_number() -> None:
    views = WeighedViews(most=10**9)
    for key in range(MOST_ENTRIES + 1):
        views.put(key, "x")
    assert [views.has(1), views.has(0)] == [True, False]


def test_a_value_that_nobody_asks_for_is_forgotten() -> None:
    views = WeighedViews(most=10)
    before = []
    views.put("a", "x")
    views.now += 11.0
    views.put("b", "y")
    views.views.get("a", lambda value: str(before.append(value)))
    assert before == [None]


def test_each_read_weighs_one_value() -> None:
    views = WeighedViews(most=10**9)
    for key in range(100):
        views.put(key, "x")
    assert views.weighed == 100
