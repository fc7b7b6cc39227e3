"""The places in a pool: how many evaluations run at once, and how many of one project."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from .errors import HelperUnavailable
from .fair_shares import FairShares

LONGEST_WAIT = 1.0
"""Seconds for which a project's evaluations may be expected to wait for those before them."""


class Places:
    """Limits the evaluations that run at the same time, by `FairShares`.  Thread-safe.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, count: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shares = FairShares(count, monotonic=monotonic)
        self._waiting: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def occupied(self, owner: str | None, timeout: float) -> Iterator[None]:
        """Wait for a place, and keep it for the body.

        The threads that wait here belong to all projects, so of a project whose evaluations take long only
        a few may.

        :param owner: the project; None: Stoker itself.
        :raises HelperUnavailable: there was none for `timeout` seconds, or enough of the project wait.
        """
        project = owner or ""
        with self._changed:
            if project and self._shares.expected_wait(project, self._waiting[project] + 1) > LONGEST_WAIT:
                raise HelperUnavailable("the project's expressions take all the time that is its share")
            self._wait(project, timeout)
        try:
            yield
        finally:
            with self._changed:
                self._shares.release(project)
                self._changed.notify_all()

    def _wait(self, project: str, timeout: float) -> None:
        self._waiting[project] += 1
        try:
            if not self._changed.wait_for(lambda: self._shares.first_of(self._waiting) == project, timeout):
                raise HelperUnavailable(f"no helper process was free for {timeout:.3g} s")
            self._shares.take(project)
        finally:
            self._waiting[project] -= 1
            if not self._waiting[project]:
                del self._waiting[project]
            self._changed.notify_all()
