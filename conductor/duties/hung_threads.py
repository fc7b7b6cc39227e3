"""Replaces a conductor in which too many threads hang."""

import logging
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class TooManyHungThreads:
    """Ends the conductor when too many of its threads hang in calls, so that a new process takes its place.

    :param hung: returns how many detached threads still hang.
    :param most: how many are too many; 0: there is no limit.
    :param act: ends the conductor; called once.
    """

    interval = 5.0

    def __init__(self, *, hung: Callable[[], int], most: int, act: Callable[[], None]) -> None:
        self._hung = hung
        self._most = most
        self._act = act
        self._has_acted = False

    def run(self) -> None:
        """Compare the number of hung threads with the limit."""
        if not self._has_acted and 0 < self._most <= self._hung():
            self._has_acted = True
            LOG.error("%d threads hang in calls that were cancelled, stopping this conductor", self._hung())
            self._act()
