"""Values that the steps of one project share, such as one list in place of a call for each resource."""

import threading
import time
import typing
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

T = typing.TypeVar("T")
MOST = 4096
"""Entries that are kept, those used last."""
IDLE = 600.0
"""Seconds after which an entry that no step has used is dropped: lists of a large project take memory."""


@dataclass
class _Entry:
    making: threading.Lock = field(default_factory=threading.Lock)
    value: typing.Any = None
    made_at: float | None = None
    used_at: float = 0.0


class SharedReads:
    """Values by key, each made by one thread at a time.  Thread-safe.

    :param clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T], max_age: float) -> T:
        """Return the value of a key if it is at most so old, in seconds; else make it.

        While one thread makes it, the others get the value before, or wait where there is none.
        """
        entry = self._entry(key)
        if self._is_fresh(entry, max_age):
            return typing.cast(T, entry.value)
        if not entry.making.acquire(blocking=entry.made_at is None):
            return typing.cast(T, entry.value)
        try:
            if not self._is_fresh(entry, max_age):  # Another thread may have made it meanwhile.
                entry.value = make()
                entry.made_at = self._clock()
            return typing.cast(T, entry.value)
        finally:
            entry.making.release()

    def forget(self, key: Hashable) -> None:
        """Make the value of a key again the next time."""
        with self._lock:
            self._entries.pop(key, None)

    def _entry(self, key: Hashable) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            now = self._clock()
            entry.used_at = now
            self._entries.move_to_end(key)
            while len(self._entries) > MOST or next(iter(self._entries.values())).used_at < now - IDLE:
                self._entries.popitem(last=False)
            return entry

    def _is_fresh(self, entry: _Entry, max_age: float) -> bool:
        return entry.made_at is not None and self._clock() - entry.made_at <= max_age
