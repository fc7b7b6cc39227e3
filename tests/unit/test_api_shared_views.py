"""Reads that requests share: who reads, and who gets the value before."""

import threading
import typing
from collections.abc import Iterator

import pytest
from harness.waiting import wait_for
from stoker.api.shared_views import IDLE_FACTOR, SharedViews

KEEP = 1.0


class Reads:
    """Views of one value on a clock that tests move; a read waits until it may end."""

    def __init__(self) -> None:
        self.now, self.made = 1000.0, 0
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.views: SharedViews[int] = SharedViews(keep=KEEP, monotonic=lambda: self.now)
        self._threads: list[threading.Thread] = []

    def get(self) -> int:
        return self.views.get("key", self._read)

    def _read(self, before: int | None) -> int:
        self.begun.set()
        assert self.may_end.wait(60)
        self.made += 1
        return self.made

    def on_thread(self) -> list[int]:
        """Get the value on a thread; the list gets it."""
        found: list[int] = []
        self._threads.append(threading.Thread(target=lambda: found.append(self.get())))
        self._threads[-1].start()
        return found

    def close(self) -> None:
        self.may_end.set()
        for thread in self._threads:
            thread.join(60)


@pytest.fixture
def reads() -> Iterator[Reads]:
    made = Reads()
    yield made
    made.close()


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
