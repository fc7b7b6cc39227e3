"""Keeps apart what would harm other work: locked rows, results that break their transaction, steps that kill.

See db/work/losses.py for the counts of conductors that were lost.
"""

import collections
import contextlib
import logging
import threading
import time
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.ids import MemberId, TaskId
from ...db.work import losses
from ...db.work.claim import Claim, Claimant
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimKey, TimerQueue, claim_key, log_context

LOG = logging.getLogger(__name__)
Json = typing.Any
LOCKED_OUT = 2.0
"""Seconds after which a result is retried of which another transaction has locked a row."""
T = typing.TypeVar("T")
R = typing.TypeVar("R")
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 8.0
"""Seconds until a locked object is retried: doubled with each time, up to the longest."""
WARN_AFTER = 3
"""Times in a row that an object was locked before a warning is logged: contention is no news."""


class LockedOut(typing.Generic[T]):
    """Tasks, claims or results whose rows other transactions hold, each with the moment of its next try.

    For the thread of the work loop.  No retry may hold that thread, as a loop of tenacity would: everything
    else continues until the moment has come.

    :ivar retries: when to try which again.
    :param monotonic: seconds that never jump.
    :param key: returns the name of an object: the task's id, and the attempt.
    """

    def __init__(self, monotonic: Callable[[], float], key: Callable[[T], Hashable]) -> None:
        self._monotonic = monotonic
        self._key = key
        self.retries: TimerQueue[T] = TimerQueue()
        self._names: set[Hashable] = set()
        self._times: dict[Hashable, int] = {}

    def due(self) -> list[T]:
        """Take out what is to be retried now."""
        due = self.retries.pop_due(self._monotonic())
        self._names.difference_update(self._key(entry) for entry in due)
        return due

    def retry_later(self, entry: T) -> None:
        """Retry the object later: it was locked."""
        times = self._times.get(self._key(entry), 0)
        if self._add(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(times, 10)), entry):
            self._times[self._key(entry)] = times + 1
            if times + 1 == WARN_AFTER:
                LOG.warning("Task %s is locked by another transaction, retrying", self._key(entry))

    def done(self, entry: T) -> None:
        """Forget that the object was locked."""
        self._times.pop(self._key(entry), None)

    def settle(self, tried: Collection[T], locked: Collection[T]) -> None:
        """Retry those later that were locked, and forget it of the others that were tried."""
        for entry in locked:
            self.retry_later(entry)
        if self._times:
            for entry in tried:
                if entry not in locked:
                    self.done(entry)

    def run(
        self, database: Database, fresh: Sequence[T], write: Callable[[Connection, Sequence[T]], R]
    ) -> Iterator[tuple[Sequence[T], R]]:
        """Do the work for the fresh objects and for those that are due; yield each part with its result.

        The fresh ones share a transaction.  If one of them is locked, each gets its own.

        :raises Unavailable: what was not done is due at once.
        """
        due = self.due()
        together = [entry for entry in due if self._key(entry) not in self._times]
        waiting = self._names | {self._key(entry) for entry in due}
        together += [entry for entry in fresh if self._key(entry) not in waiting]
        retried = [[entry] for entry in due if self._key(entry) in self._times]
        parts = [together, *retried] if together else retried
        try:
            while parts:
                part = parts[0]
                try:
                    result = _write(database, write, part)
                except RowLocked:
                    if len(part) == 1:
                        self.retry_later(part[0])
                    parts[:1] = [[entry] for entry in part] if len(part) > 1 else []
                    continue
                del parts[0]
                for entry in part:
                    self.done(entry)
                yield part, result
        finally:
            for part in parts:
                for entry in part:
                    self._add(0.0, entry)

    def _add(self, pause: float, entry: T) -> bool:
        if self._key(entry) in self._names:
            return False
        self._names.add(self._key(entry))
        self.retries.add(self._monotonic() + pause, entry)
        return True


class UnstorableResults:
    """Results to be tried alone: one that broke its batch's transaction must not take the others along.

    After an error other than an unavailable database each result of the batch is tried alone.  One that
    breaks alone is replaced by a failure, and if that breaks too it is dropped.  One that others lock out is
    put off, so that it delays none of the others.  For the thread of the work loop.

    :ivar waiting: results to be tried alone; True: as a failure, for the result broke alone before.
    :ivar retries: when to try those again that others lock out.
    """

    def __init__(self, steps: Steps, monotonic: Callable[[], float]) -> None:
        self._steps = steps
        self._monotonic = monotonic
        self.retries: TimerQueue[StepResult] = TimerQueue()
        self._locked_out: dict[ClaimKey, StepResult] = {}
        self.waiting: collections.deque[tuple[StepResult, bool]] = collections.deque()
        self._is_guilty = False
        self._dropped: set[ClaimKey] = set()

    def claims(self) -> set[ClaimKey]:
        """Return the claims whose results wait here, or were dropped.

        Nobody else gets the dropped ones before their time is over.
        """
        waiting = {claim_key(result.claim) for result, _ in self.waiting}
        return self._dropped | self._locked_out.keys() | waiting

    def next(self, who: Claimant | None) -> StepResult | None:
        """Take out the next one that is to be tried alone; None: there is none."""
        self._is_guilty = False
        if who is None:
            return None
        for result in self.retries.pop_due(self._monotonic()):
            del self._locked_out[claim_key(result.claim)]
            self.waiting.append((result, False))
        if not self.waiting:
            return None
        result, self._is_guilty = self.waiting.popleft()
        if not self._is_guilty:
            return result
        return replace(self._steps.unstorable(result.claim, who), detached=result.detached)

    @contextlib.contextmanager
    def watch(self, batch: Sequence[StepResult]) -> Iterator[None]:
        """Surround the transaction that stores the batch; let every error pass."""
        settled = False
        try:
            yield
            settled = True
        except RowLocked:
            settled = True
            self._retry_later(batch)
            raise
        except Unavailable:
            settled = True  # It says nothing about the batch; the work loop keeps it.
            raise
        except MemoryError:
            # One alone is requeued, so that another conductor may try.
            settled = len(batch) == 1
            raise
        finally:
            if not settled:
                self._blame(batch)

    def _retry_later(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self.waiting.extend((result, False) for result in batch)
        for result in batch if len(batch) == 1 else ():
            with log_context(result.claim):
                LOG.warning("The result of task %s is locked out, retrying", result.claim.task.id)
            self._locked_out[claim_key(result.claim)] = result
            self.retries.add(self._monotonic() + LOCKED_OUT, result)

    def _blame(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self.waiting.extend((result, False) for result in batch)
        elif batch:
            with log_context(batch[0].claim):
                self._blame_one(batch[0])

    def _blame_one(self, result: StepResult) -> None:
        if self._is_guilty:
            self._dropped.add(claim_key(result.claim))
            LOG.error("Task %s is dropped: not even its failure can be stored", result.claim.task.id)
        else:
            LOG.error("The result of task %s cannot be stored", result.claim.task.id)
            self.waiting.appendleft((result, True))


def _write(database: Database, write: Callable[[Connection, Sequence[T]], R], part: Sequence[T]) -> R:
    return database.write(lambda conn: write(conn, part), brief=True)


UNSURE = 1.0
"""Seconds until a step is retried that did not run because our membership was in doubt."""
NEXT_TRY = 1.0
"""Seconds until a step is retried that has to wait for another one, or for the database."""


class Quarantine:
    """Lets steps run, those of tasks with which conductors were lost one at a time at the end.

    The threads of the pool call `run`, the work loop `forget` and `leave`.

    :ivar cleared: tasks whose losses are to be forgotten.
    :param most: lost conductors at which a task fails.
    :param member: returns our name on the ring at this moment; None: we cannot be sure of it.
    """

    def __init__(
        self,
        steps: Steps,
        *,
        database: Database,
        most: int,
        member: Callable[[], MemberId | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._database = database
        self._most = most
        self._member = member
        self._lock = threading.Lock()
        self._alone: ClaimKey | None = None
        self.cleared: collections.deque[TaskId] = collections.deque()
        self.locked: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)

    def run(self, held: ClaimedTask, progress: Json, who: Claimant) -> StepResult:
        """Run the step; or return that it has to be retried a little later.

        :param progress: the token to poll with, and to retry with.
        """
        claim = held.claim
        # It may have waited long for its thread, in a process that was paused.  It is not cancelled for that:
        # the name may be ours again before the work loop has missed it.
        if self._member() != who.member:
            return StepResult(claim, None, poll_after=UNSURE, progress=progress)
        if not claim.task.losses:
            return self._steps.run(claim, progress, held.stop, who)
        if len(losses.hosts(claim.task)) >= self._most:
            return self._steps.lost_too_often(claim, who)
        if not losses.is_last_chance(claim.task, self._most):
            return self._clear(self._steps.run(claim, progress, held.stop, who))
        wait = StepResult(claim, None, poll_after=NEXT_TRY, progress=progress)
        if not self._enter(claim):
            return wait
        try:
            if not self._announce(claim, who.member):
                return wait
            return self._clear(self._steps.run(claim, progress, held.stop, who))
        finally:
            self.leave(claim)

    def leave(self, claim: Claim) -> None:
        """Let the next task run alone: the step of this one has ended, or its thread was detached."""
        with self._lock:
            if self._alone == claim_key(claim):
                self._alone = None

    def forget(self, who: Claimant) -> None:
        """Forget the losses of tasks whose steps have ended without a result to be stored.

        :raises Unavailable: it is retried at the next call.
        """
        ids = [self.cleared.popleft() for _ in range(len(self.cleared))]
        for _ in self.locked.run(
            self._database, ids, lambda conn, part: losses.forget(conn, part, who.member)
        ):
            pass

    def _enter(self, claim: Claim) -> bool:
        with self._lock:
            if self._alone is not None:
                return False
            self._alone = claim_key(claim)
            return True

    def _announce(self, claim: Claim, member: MemberId) -> bool:
        """Store that the step runs alone now: if the conductor dies in it, the task is to blame."""
        try:
            held = self._database.write(lambda conn: losses.announce(conn, claim.task, member))
        except Unavailable as error:
            LOG.warning("Task %s waits, the database is unavailable: %s", claim.task.id, error)
            return False
        if held:
            text = "Task %s runs alone in quarantine: it was running on %s, which died or went silent"
            LOG.warning(text, claim.task.id, " and ".join(losses.hosts(claim.task)))
        return bool(held)

    def _clear(self, result: StepResult) -> StepResult:
        """Forget the losses; the transaction that stores an outcome does so by itself."""
        if result.outcome is None:
            self.cleared.append(result.claim.task.id)
        return replace(result, claim=replace(result.claim, task=replace(result.claim.task, losses=None)))
