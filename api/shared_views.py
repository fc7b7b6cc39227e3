"""Reads that requests share: a hundred consoles that poll one stack cost the database no more than one."""

import threading
import time
import typing
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

T = typing.TypeVar("T")

IDLE_FACTOR = 5.0
"""Lengths of a read for which its value is kept at least: long reads do not follow each other."""
MOST_ENTRIES = 4096
"""Values that are kept at most, however light they are."""


@dataclass
class _Entry(typing.Generic[T]):
    """A value that was read, and who may read it again.

    :ivar fresh_until, usable_until: two instants of the monotonic clock; between them a request reads
        the value again.
    :ivar used_at: the instant of the last request for the value.
    :ivar weight: the value's part of the sum of all weights.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    fresh_until: float = 0.0
    usable_until: float = 0.0
    used_at: float = 0.0
    weight: int = 0


class SharedViews(typing.Generic[T]):
    """Keeps values for a moment after they were read, for all requests of this process.  Thread-safe.

    One request at a time reads a value.  Meanwhile others get the one before, or wait where there is none, or
    one that has not been asked for in a while.

    :param keep: the seconds for which a value is returned again; longer where reading it took long.
    :param most: the highest sum of the kept values' weights; the value not asked for longest goes first, and
        a value that is heavier is not kept.
    :param weigh: a function that returns the weight of a value.
    :param idle: the seconds after which a value that nobody asks for is forgotten.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self,
        *,
        keep: float = 1.0,
        most: int = 1000,
        weigh: Callable[[T], int] = lambda value: 1,
        idle: float = 60.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep = keep
        self._most = most
        self._weigh = weigh
        self._idle = idle
        self._monotonic = monotonic
        self._lock = threading.Lock()
        # The one not asked for longest is the first.
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._total = 0

    def get(self, key: Hashable, read: Callable[[T | None], T]) -> T:
        """Return the value of a key.

        :param read: a function that reads the value; its argument is the value before, or None.
        :raises Exception: any error of `read`, after which the next request reads again.
        """
        with self._lock:
            entry = self._used(key)
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
            with self._lock:
                if entry.value is None and self._entries.get(key) is entry:
                    self._forget(key)
            raise
        now = self._monotonic()
        weight = self._weigh(value)
        entry.value = value
        seconds = max(self._keep, IDLE_FACTOR * (now - began))
        entry.fresh_until = now + seconds
        entry.usable_until = now + 2 * seconds
        with self._lock:
            if self._entries.get(key) is entry:  # Else others have taken its room while it was read.
                self._total += weight - entry.weight
                entry.weight = weight
                if weight > self._most:
                    self._forget(key)
                self._make_room()

    def _used(self, key: Hashable) -> _Entry[T]:
        """Return the entry of a key, and forget those that nobody has asked for in a while."""
        now = self._monotonic()
        entry = self._entries.setdefault(key, _Entry())
        entry.used_at = now
        self._entries.move_to_end(key)
        while self._is_idle(next(iter(self._entries.values())), now):
            self._forget(next(iter(self._entries)))
        self._make_room()
        return entry

    def _is_idle(self, entry: _Entry[T], now: float) -> bool:
        is_asked_for = entry.used_at >= now - self._idle or entry.lock.locked()
        return not is_asked_for and now >= entry.usable_until

    def _make_room(self) -> None:
        while self._total > self._most or len(self._entries) > MOST_ENTRIES:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: Hashable) -> None:
        self._total -= self._entries.pop(key).weight
