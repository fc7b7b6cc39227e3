"""Going past objects whose rows others hold, so that one lock delays nobody else's object."""

import logging
import time
import typing
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked, TooSlow

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
R = typing.TypeVar("R")
TOGETHER = 20
"""Objects of one transaction: fewer commits, while no row stays locked for long."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds until an object that was locked is tried again: doubled with each time, up to the longest."""
TELL_AFTER = 3
"""Times in a row that an object was locked before a warning is logged: contention is no news."""


@dataclass(frozen=True)
class _Locked:
    """:ivar until: by the monotonic clock.  :ivar times: in a row."""

    until: float
    times: int


class Bypass:
    """Runs a duty's transactions over objects that may be locked.  For the thread of one duty at a time.

    Several objects share a transaction.  One that waits for a lock is undone, and its objects are tried one
    by one after all others; who is locked then is left alone for a while.

    :param what: the objects, for the log.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self, database: Database, what: str, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._what = what
        self._monotonic = monotonic
        self._locked: dict[Hashable, _Locked] = {}

    def run(
        self,
        objects: Sequence[T],
        work: Callable[[Connection, Sequence[T]], R],
        *,
        key: Callable[[T], Hashable],
        together: int = TOGETHER,
    ) -> Iterator[R]:
        """Do the work for all that are not locked; what each transaction has returned.

        :param key: the name of an object, stable over rounds.
        :raises Unavailable: the database does not answer.
        """
        now = self._monotonic()
        self._forget_old(now)
        fresh = [thing for thing in objects if key(thing) not in self._locked]
        known = [
            thing for thing in objects if key(thing) in self._locked and self._locked[key(thing)].until <= now
        ]
        single: list[T] = []
        for start in range(0, len(fresh), together):
            part = fresh[start : start + together]
            try:
                yield self._write(work, part)
            except (RowLocked, TooSlow) as error:
                if len(part) == 1:
                    self._put_off(key(part[0]), error)
                else:
                    single += part
        for thing in (*single, *known):
            try:
                done = self._write(work, [thing])
            except (RowLocked, TooSlow) as error:
                self._put_off(key(thing), error)
            else:
                self._locked.pop(key(thing), None)
                yield done

    def _write(self, work: Callable[[Connection, Sequence[T]], R], part: Sequence[T]) -> R:
        return self._database.write(lambda conn: work(conn, part), brief=True)

    def _put_off(self, name: Hashable, error: Exception) -> None:
        times = self._locked[name].times + 1 if name in self._locked else 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(times - 1, 10))
        self._locked[name] = _Locked(self._monotonic() + pause, times)
        if times == TELL_AFTER:
            LOG.warning("%s %s is locked by another transaction, retrying: %s", self._what, name, error)

    def _forget_old(self, now: float) -> None:
        """Those that nobody asked for again were done by others."""
        old = [name for name, locked in self._locked.items() if now - locked.until > 2 * LONGEST_PAUSE]
        for name in old:
            del self._locked[name]
