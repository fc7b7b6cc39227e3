"""When to look at what again: a queue by time."""

import heapq
import itertools
import typing

T = typing.TypeVar("T")


class TimerQueue(typing.Generic[T]):
    """Items with the moment at which they are due.  Not thread-safe: the pipeline's own thread uses it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at: float, item: T) -> None:
        """Make `item` due at the moment `at` (seconds, of the clock that is given to pop_due)."""
        heapq.heappush(self._heap, (at, next(self._order), item))

    def items(self) -> list[T]:
        """Return all items, in no order."""
        return [entry[2] for entry in self._heap]

    def next_at(self) -> float | None:
        """The earliest moment, or None."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, most: int) -> list[T]:
        """Take out at most `most` items whose moment has come, the longest due first."""
        due: list[T] = []
        while self._heap and len(due) < most and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due
