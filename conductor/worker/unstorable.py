"""Results that could not be stored: one that broke its batch's transaction must not take the others along."""

import collections
import contextlib
import logging
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.ids import TaskId
from ...db.work.claim import Claimant
from ..steps.outcomes import StepResult
from ..steps.runner import StepRunner
from .claimed import TimerQueue, claim_lines

LOG = logging.getLogger(__name__)
LOCKED_OUT = 2.0
"""Seconds after which a result is tried again of which another transaction has locked a row."""


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


class UnstorableResults:
    """After an error that is not the database's absence, each result of the batch is tried alone; one that
    breaks alone is replaced by a failure, and if that breaks too it is dropped.  One that others lock out is
    put off, so that it delays none of the others.  For the mover's thread.

    :ivar is_trying: one is tried alone now.
    """

    def __init__(self, runner: StepRunner, monotonic: Callable[[], float]) -> None:
        self._runner = runner
        self._monotonic = monotonic
        self._locked: TimerQueue[StepResult] = TimerQueue()
        self._locked_out: dict[tuple[TaskId, int], StepResult] = {}
        self._waiting: collections.deque[tuple[StepResult, bool]] = collections.deque()
        self._guilty = self.is_trying = False
        self._dropped: set[tuple[TaskId, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def claims(self) -> set[tuple[TaskId, int]]:
        """Return the claims (task, attempt) whose results wait here, or were dropped: nobody else gets those
        before their time is over."""
        return self._dropped | self._locked_out.keys() | {_claim(result) for result, _ in self._waiting}

    def next(self, who: Claimant | None) -> StepResult | None:
        """The next one to be tried alone."""
        self._guilty = self.is_trying = False
        if who is None:
            return None
        for result in self._locked.pop_due(self._monotonic(), len(self._locked)):
            del self._locked_out[_claim(result)]
            self._waiting.append((result, False))
        if not self._waiting:
            return None
        result, self._guilty = self._waiting.popleft()
        self.is_trying = True
        return self._runner.unstorable(result.claim, who) if self._guilty else result

    def next_at(self) -> float | None:
        """Return the moment at which one is tried again that others have locked out; None: there is none."""
        return self._locked.next_at()

    @contextlib.contextmanager
    def watch(self, batch: Sequence[StepResult]) -> Iterator[None]:
        """Around the transaction that stores the batch; lets every error pass."""
        stored = False
        try:
            yield
            stored = True
        except RowLocked:
            stored = True
            self._put_off(batch)
            raise
        except Unavailable:
            stored = True  # Its absence says nothing about the batch; the pipeline keeps it.
            raise
        except MemoryError:
            # One alone is given back, so that another conductor may try.
            stored = len(batch) == 1
            raise
        finally:
            if not stored:
                self._suspect(batch)

    def _put_off(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self._waiting.extend((result, False) for result in batch)
        for result in batch if len(batch) == 1 else ():
            with claim_lines(result.claim):
                LOG.warning("The result of task %s is locked out, retrying", result.claim.task.id)
            self._locked_out[_claim(result)] = result
            self._locked.add(self._monotonic() + LOCKED_OUT, result)

    def _suspect(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self._waiting.extend((result, False) for result in batch)
        elif batch:
            with claim_lines(batch[0].claim):
                self._suspect_one(batch[0])

    def _suspect_one(self, result: StepResult) -> None:
        if self._guilty:
            self._dropped.add(_claim(result))
            LOG.error("Task %s is given up: not even its failure can be stored", result.claim.task.id)
        else:
            LOG.error("The result of task %s cannot be stored", result.claim.task.id)
            self._waiting.appendleft((result, True))


def _claim(result: StepResult) -> tuple[TaskId, int]:
    return result.claim.task.id, result.claim.task.attempt
