"""Reads that requests share: a hundred consoles that poll one stack cost the database what one does."""

import threading
import time
import typing
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

T = typing.TypeVar("T")

IDLE_FACTOR = 5.0
"""Lengths of a read for which its value is kept at least: long reads do not follow each other."""


@dataclass
class _Entry(typing.Generic[T]):
    """A value that was read, and who may read it again.

    :ivar fresh_until, usable_until: seconds of the monotonic clock; between them it is read again.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    fresh_until: float = 0.0
    usable_until: float = 0.0
    weight: int = 0


class SharedViews(typing.Generic[T]):
    """Keeps what was read for a moment, for all requests of this process that want the same.  Thread-safe.

    One request at a time reads a value.  Meanwhile others get the one before, or wait where there is none, or
    one that has not been asked for in a while.

    :param keep: seconds for which a value is returned again; longer where reading it took long.
    :param most: sum of the weights of the values that are kept; the one not asked for longest goes first.
    :param weigh: returns the weight of a value.
    """

    def __init__(
        self,
        *,
        keep: float = 1.0,
        most: int = 1000,
        weigh: Callable[[T], int] = lambda value: 1,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep = keep
        self._most = most
        self._weigh = weigh
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()

    def get(self, key: Hashable, read: Callable[[T | None], T]) -> T:
        """Return the value of a key.

        :param read: reads it; it gets the value before, None if there is none.
        :raises Exception: what `read` raises; then the next request reads again.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        if entry.value is not None and self._monotonic() < entry.fresh_until:
            return entry.value
        is_usable = entry.value is not None and self._monotonic() < entry.usable_until
        if not entry.lock.acquire(blocking=not is_usable):
            return typing.cast(T, entry.value)
        try:
            if entry.value is None or self._monotonic() >= entry.fresh_until:
                self._read(key, entry, read)
            return typing.cast(T, entry.value)
        finally:
            entry.lock.release()

    def _read(self, key: Hashable, entry: _Entry[T], read: Callable[[T | None], T]) -> None:
        began = self._monotonic()
        try:
            value = read(entry.value)
        except BaseException:
            if entry.value is None:
                with self._lock:
                    self._entries.pop(key, None)
            raise
        now = self._monotonic()
        entry.value, entry.weight = value, self._weigh(value)
        kept = max(self._keep, IDLE_FACTOR * (now - began))
        entry.fresh_until, entry.usable_until = now + kept, now + 2 * kept
        with self._lock:
            self._make_room()

    def _make_room(self) -> None:
        total = sum(entry.weight for entry in self._entries.values())
        while total > self._most and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            total -= oldest.weight
