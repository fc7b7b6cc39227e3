"""In which version messages are sent, while neighbours of different releases work together."""

import logging
import threading
import time
from collections.abc import Callable, Iterable

from ..db.errors import DatabaseError
from .contract import LOWEST, parsed, understood

LOG = logging.getLogger(__name__)
AUTO = "auto"
HOLDS = 5.0
"""Seconds for which a process that sees no ring goes on without another look."""


class Level:
    """The highest version that may be sent: the pin, or what all conductors that report understand.

    It is looked at only when something is to be sent of which there is a newer form, and what was found holds
    for a while, or until the ring changes: so an idle process reads nothing.  Thread-safe.

    Who joins is in the ring a moment before it has said which version it speaks.  A message that it refuses
    meanwhile is lost like any other.

    :param spoken: the versions that conductors say they understand; asks the database.
    :param pin: the version that the operator wants, or AUTO; asked each time, for it may change at run time.
    """

    def __init__(
        self,
        spoken: Callable[[], Iterable[str]],
        *,
        pin: Callable[[], str] = lambda: AUTO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spoken = spoken
        self._pin = pin
        self._clock = clock
        self._lock = threading.Lock()
        self._found = LOWEST
        self._until: float | None = None

    def allows(self, version: str) -> bool:
        """Whether messages of that version may be sent now."""
        return parsed(version) <= parsed(self.version())

    def version(self) -> str:
        """The highest one.  May ask the database; where that is away, what was known last."""
        if (pin := self._pin()) != AUTO:
            return pin
        with self._lock:
            if self._until is None or self._clock() >= self._until:
                self._until = self._clock() + HOLDS
                self._look()
            return self._found

    def look_again(self) -> None:
        """Somebody has come or gone."""
        with self._lock:
            self._until = None

    def _look(self) -> None:
        try:
            found = understood(self._spoken())
        except DatabaseError as error:
            LOG.warning("Messages are sent in version %s still: %s", self._found, error)
            return
        if found != self._found:
            LOG.info("Messages are sent in version %s now, which all conductors understand", found)
            self._found = found
