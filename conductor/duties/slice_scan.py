"""Walks over the due objects of the slice, and goes past rows that other transactions have locked."""

import functools
import logging
import typing
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...db.errors import DamagedRow, RowLocked, TooSlow
from .context import DutyContext

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
R = typing.TypeVar("R")
Position = typing.TypeVar("Position")
PAGE = 500
"""Objects that one query reads."""
TOGETHER = 20
"""Objects of one transaction: fewer commits, while no row stays locked for long."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
"""Seconds until a locked object is retried: doubled each time, up to the longest."""
WARN_AFTER = 3
"""Times in a row that an object was locked before a warning is logged: contention is no news."""


@dataclass(frozen=True)
class _Locked:
    """An object that was locked.

    :ivar until: when it is retried, by the monotonic clock.
    :ivar times: how often in a row it was locked.
    """

    until: float
    times: int


class SliceScan:
    """Reads objects page by page and runs a duty's transactions over them.

    Used by the thread of one duty at a time.  Several objects share a transaction.  A transaction that waits
    for a lock is rolled back, and its objects are retried one by one after all others.  An object that is
    still locked then pauses for a while, so that one lock delays nobody else's object.

    :param objects: name of the objects, for the log.
    """

    def __init__(self, context: DutyContext, objects: str) -> None:
        self._database = context.database
        self._monotonic = context.monotonic
        self._objects = objects
        self._locked: dict[Hashable, _Locked] = {}

    def pages(
        self,
        read: Callable[..., list[T]],
        *,
        start: Position,
        position: Callable[[T], Position],
        size: int = PAGE,
    ) -> Iterator[list[T]]:
        """Return all objects that `read` finds, in pages.

        Each page is read when the one before it is done, from behind its last object.  So objects that stay
        due, because they are locked or belong to others, never hide those behind them.

        :param read: given a connection and `after`, returns up to `size` objects behind that position.
        :param position: returns the position of an object.
        """
        after = start
        while True:
            page = self._database.read(functools.partial(read, after=after))
            yield page
            if len(page) < size:
                return
            after = position(page[-1])

    def run(
        self,
        objects: Sequence[T],
        write: Callable[[Connection, Sequence[T]], R],
        *,
        key: Callable[[T], Hashable],
        together: int = TOGETHER,
    ) -> Iterator[R]:
        """Run `write` over all objects that are not locked, and return the result of each transaction.

        :param key: returns the name of an object, stable over rounds.
        :param together: most objects of one transaction.
        :raises Unavailable: the database does not answer.
        """
        now = self._monotonic()
        self._forget_old(now)
        fresh = [entry for entry in objects if key(entry) not in self._locked]
        retried = [
            entry for entry in objects if key(entry) in self._locked and self._locked[key(entry)].until <= now
        ]
        single: list[T] = []
        for start in range(0, len(fresh), together):
            chunk = fresh[start : start + together]
            try:
                yield self._write(write, chunk)
            except (RowLocked, TooSlow, DamagedRow) as error:
                if len(chunk) == 1:
                    self._retry_later(key(chunk[0]), error)
                else:
                    single += chunk
        for entry in (*single, *retried):
            try:
                done = self._write(write, [entry])
            except (RowLocked, TooSlow, DamagedRow) as error:
                self._retry_later(key(entry), error)
            else:
                self._locked.pop(key(entry), None)
                yield done

    def _write(self, write: Callable[[Connection, Sequence[T]], R], chunk: Sequence[T]) -> R:
        return self._database.write(lambda conn: write(conn, chunk), brief=True)

    def _retry_later(self, name: Hashable, error: Exception) -> None:
        times = self._locked[name].times + 1 if name in self._locked else 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(times - 1, 10))
        self._locked[name] = _Locked(self._monotonic() + pause, times)
        if isinstance(error, DamagedRow):
            if times == 1:
                LOG.error("%s %s is left out, its rows cannot be read: %s", self._objects, name, error)
        elif times == WARN_AFTER:
            LOG.warning("%s %s is locked by another transaction, retrying: %s", self._objects, name, error)

    def _forget_old(self, now: float) -> None:
        """Forget objects that were not seen again: other conductors have done them."""
        old = [name for name, locked in self._locked.items() if now - locked.until > 2 * LONGEST_PAUSE]
        for name in old:
            del self._locked[name]
