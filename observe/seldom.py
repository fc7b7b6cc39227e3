"""A limit of log lines that would repeat with each try, as while the disk of the database is full."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

EVERY = 60.0
"""Seconds between two lines of one kind."""
MOST_KINDS = 1000


class Seldom:
    """Lets one line of a kind pass in a minute.  Thread-safe.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._passed_at: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def passes(self, *kind: str) -> bool:
        """Return whether a line of this kind is to be logged now."""
        now = self._monotonic()
        with self._lock:
            at = self._passed_at.get(kind)
            if at is not None and now - at < EVERY:
                return False
            self._passed_at[kind] = now
            self._passed_at.move_to_end(kind)
            if len(self._passed_at) > MOST_KINDS:
                self._passed_at.popitem(last=False)
        return True
