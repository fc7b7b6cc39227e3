"""Work that other transactions lock out: it is retried later, while everything else goes on."""

import logging
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked
from .timers import TimerQueue

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
R = typing.TypeVar("R")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 8.0
"""Seconds until a locked object is retried: doubled with each time, up to the longest."""
TELL_AFTER = 3
"""Times in a row that an object was locked before a warning is logged: contention is no news."""


class LockedOut(typing.Generic[T]):
    """Tasks, claims or results whose rows other transactions hold, each with the moment of its next try.

    For the thread of the work loop.

    :param monotonic: seconds that never jump.
    :param key: returns the name of an object: the task's id, and the attempt.
    """

    def __init__(self, monotonic: Callable[[], float], key: Callable[[T], Hashable]) -> None:
        self._monotonic = monotonic
        self._key = key
        self._waiting: TimerQueue[T] = TimerQueue()
        self._names: set[Hashable] = set()
        self._times: dict[Hashable, int] = {}

    def next_at(self) -> float | None:
        """Return the moment of the next try; None: nothing waits."""
        return self._waiting.next_at()

    def due(self) -> list[T]:
        """Take out what is to be retried now."""
        due = self._waiting.pop_due(self._monotonic(), len(self._waiting))
        self._names.difference_update(self._key(thing) for thing in due)
        return due

    def put_off(self, thing: T) -> None:
        """Retry the object later: it was locked."""
        times = self._times.get(self._key(thing), 0)
        if self._add(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(times, 10)), thing):
            self._times[self._key(thing)] = times + 1
            if times + 1 == TELL_AFTER:
                LOG.warning("Task %s is locked by another transaction, retrying", self._key(thing))

    def done(self, thing: T) -> None:
        """Forget that the object was locked."""
        self._times.pop(self._key(thing), None)

    def settle(self, tried: Collection[T], locked: Collection[T]) -> None:
        """Put off those that were locked, and forget it of the others that were tried."""
        for thing in locked:
            self.put_off(thing)
        for thing in tried:
            if thing not in locked:
                self.done(thing)

    def run(
        self, database: Database, fresh: Sequence[T], work: Callable[[Connection, Sequence[T]], R]
    ) -> Iterator[tuple[Sequence[T], R]]:
        """Do the work for the fresh objects and for those that are due; yield each part with its result.

        The fresh ones share a transaction.  If one of them is locked, each gets its own.

        :raises Unavailable: what was not done is due at once.
        """
        due = self.due()
        together = [thing for thing in due if self._key(thing) not in self._times]
        waiting = self._names | {self._key(thing) for thing in due}
        together += [thing for thing in fresh if self._key(thing) not in waiting]
        known = [[thing] for thing in due if self._key(thing) in self._times]
        parts = [together, *known] if together else known
        try:
            while parts:
                part = parts[0]
                try:
                    result = _write(database, work, part)
                except RowLocked:
                    if len(part) == 1:
                        self.put_off(part[0])
                    parts[:1] = [[thing] for thing in part] if len(part) > 1 else []
                    continue
                del parts[0]
                for thing in part:
                    self.done(thing)
                yield part, result
        finally:
            for part in parts:
                for thing in part:
                    self._add(0.0, thing)

    def _add(self, pause: float, thing: T) -> bool:
        if self._key(thing) in self._names:
            return False
        self._names.add(self._key(thing))
        self._waiting.add(self._monotonic() + pause, thing)
        return True


def _write(database: Database, work: Callable[[Connection, Sequence[T]], R], part: Sequence[T]) -> R:
    return database.write(lambda conn: work(conn, part), brief=True)
