"""A limit of the requests that one project sends in a minute."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from .errors import Fault

BURST = 10.0
"""Seconds whose requests may come at once, after a pause."""
MOST_PROJECTS = 10_000
"""Projects that are remembered; the one that asked least recently is forgotten first."""


class RequestRates:
    """Counts the requests of each project by a bucket that fills evenly.  Thread-safe.

    :param per_minute: requests of one project; 0: any number.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(self, per_minute: int = 0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._most = max(1.0, self._per_second * BURST)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, project_id: str) -> None:
        """Count a request, unless it names no project.

        :raises Fault: 429, the project has sent too many.
        """
        if not self._per_second or not project_id:
            return
        now = self._monotonic()
        with self._lock:
            left, filled_at = self._buckets.pop(project_id, (self._most, now))
            left = min(self._most, left + (now - filled_at) * self._per_second)
            is_refused = left < 1
            self._buckets[project_id] = (left if is_refused else left - 1, now)
            if len(self._buckets) > MOST_PROJECTS:
                self._buckets.popitem(last=False)
        if is_refused:
            most = round(self._per_second * 60)
            seconds = math.ceil((1 - left) / self._per_second)
            text = f"This project may send {most} requests in a minute"
            raise Fault(429, "TooManyRequests", text, retry_after=seconds)
