"""Faults of the work: locked rows, results that cannot be stored or come late, claims that are unknown.

Everything here is kept and retried until the database has it, and delays nothing else.
"""

import collections
import contextlib
import functools
import logging
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from ...db.engine import Database
from ...db.errors import DamagedRow, RowLocked, Unavailable
from ...db.ids import TaskId
from ...db.rows import ReadyTasks
from ...db.work import losses, member_claims, tasks
from ...db.work.claim import Claim, Claimant
from ...engine.cancel import announce_timed_out, fail_unreadable
from ...engine.context import Hints, announce
from ..late_steps import record_hung, resolve_late
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimEvent, ClaimKey, claim_key, log_context
from .claims import Claims, TimerQueue
from .executor import StepExecutor, WorkMetrics

LOG = logging.getLogger(__name__)
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
    :ivar names: the names of these.
    :ivar times: how often each was locked in a row, by name.
    :param monotonic: seconds that never jump.
    :param key: returns the name of an object: the task's id, and the attempt.
    """

    def __init__(self, monotonic: Callable[[], float], key: Callable[[T], Hashable]) -> None:
        self._monotonic = monotonic
        self._key = key
        self.retries: TimerQueue[T] = TimerQueue()
        self.names: set[Hashable] = set()
        self.times: dict[Hashable, int] = {}

    def due(self) -> list[T]:
        """Take out the objects that are to be retried now."""
        due = self.retries.pop_due(self._monotonic())
        self.names.difference_update(self._key(entry) for entry in due)
        return due

    def retry_later(self, entry: T) -> None:
        """Retry the object later: it was locked."""
        times = self.times.get(self._key(entry), 0)
        if self._add(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(times, 10)), entry):
            self.times[self._key(entry)] = times + 1
            if times + 1 == WARN_AFTER:
                LOG.warning("Task %s is locked by another transaction, retrying", self._key(entry))

    def done(self, entry: T) -> None:
        """Forget that the object was locked."""
        self.times.pop(self._key(entry), None)

    def settle(self, tried: Collection[T], locked: Collection[T]) -> None:
        """Retry those later that were locked, and forget it of the others that were tried."""
        for entry in locked:
            self.retry_later(entry)
        if self.times:
            for entry in tried:
                if entry not in locked:
                    self.done(entry)

    def run(
        self, database: Database, fresh: Sequence[T], write: Callable[[Connection, Sequence[T]], R]
    ) -> Iterator[tuple[Sequence[T], R]]:
        """Do the work for the fresh objects and for those that are due; yield each part with its result.

        The fresh ones share a transaction.  If one of them is locked, each gets its own.

        :raises Unavailable: the database does not answer; the objects that are left are due at once.
        """
        due = self.due()
        together = [entry for entry in due if self._key(entry) not in self.times]
        waiting = self.names | {self._key(entry) for entry in due}
        together += [entry for entry in fresh if self._key(entry) not in waiting]
        retried = [[entry] for entry in due if self._key(entry) in self.times]
        parts = [together, *retried] if together else retried
        try:
            while parts:
                chunk = parts[0]
                try:
                    result = _write(database, write, chunk)
                except RowLocked:
                    if len(chunk) == 1:
                        self.retry_later(chunk[0])
                    parts[:1] = [[entry] for entry in chunk] if len(chunk) > 1 else []
                    continue
                del parts[0]
                for entry in chunk:
                    self.done(entry)
                yield chunk, result
        finally:
            for chunk in parts:
                for entry in chunk:
                    self._add(0.0, entry)

    def _add(self, pause: float, entry: T) -> bool:
        if self._key(entry) in self.names:
            return False
        self.names.add(self._key(entry))
        self.retries.add(self._monotonic() + pause, entry)
        return True


class LoneResult(typing.NamedTuple):
    """A result that is tried alone.

    :ivar is_guilty: whether it broke alone before, so that a failure is stored in its place.
    """

    result: StepResult
    is_guilty: bool = False


class UnstorableResults:
    """Results to be tried alone: one that broke its batch's transaction must not take the others along.

    After an error other than an unavailable database each result of the batch is tried alone.  One that
    breaks alone is replaced by a failure, and if that breaks too it is dropped.  One that others lock out is
    put off, so that it delays none of the others.  For the thread of the work loop.

    :ivar waiting: results to be tried alone.
    :ivar locked_out: results that others lock out.
    :ivar retries: when to try those again.
    """

    def __init__(self, steps: Steps, monotonic: Callable[[], float]) -> None:
        self._steps = steps
        self._monotonic = monotonic
        self.retries: TimerQueue[StepResult] = TimerQueue()
        self.locked_out: dict[ClaimKey, StepResult] = {}
        self.waiting: collections.deque[LoneResult] = collections.deque()
        self._dropped: set[ClaimKey] = set()

    def claims(self) -> set[ClaimKey]:
        """Return the claims whose results wait here, or were dropped.

        Nobody else gets the dropped ones before their time is over.
        """
        waiting = {claim_key(result.claim) for result, _ in self.waiting}
        return self._dropped | self.locked_out.keys() | waiting

    def next(self, who: Claimant) -> LoneResult | None:
        """Take out the next one that is to be tried alone; None: there is none."""
        for result in self.retries.pop_due(self._monotonic()):
            del self.locked_out[claim_key(result.claim)]
            self.waiting.append(LoneResult(result))
        if not self.waiting:
            return None
        alone = self.waiting.popleft()
        if not alone.is_guilty:
            return alone
        failure = self._steps.unstorable(alone.result.claim, who)
        return alone._replace(result=replace(failure, detached=alone.result.detached))

    @contextlib.contextmanager
    def watch(self, batch: Sequence[StepResult], *, is_guilty: bool) -> Iterator[None]:
        """Surround the transaction that stores the batch; let every error pass.

        :param is_guilty: whether it is one result, as a failure, that broke alone before.
        """
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
                self._blame(batch, is_guilty=is_guilty)

    def _retry_later(self, batch: Sequence[StepResult]) -> None:
        if len(batch) > 1:
            self.waiting.extend(map(LoneResult, batch))
        for result in batch if len(batch) == 1 else ():
            with log_context(result.claim):
                LOG.warning("The result of task %s is locked out, retrying", result.claim.task.id)
            self.locked_out[claim_key(result.claim)] = result
            self.retries.add(self._monotonic() + LOCKED_OUT, result)

    def _blame(self, batch: Sequence[StepResult], *, is_guilty: bool) -> None:
        if len(batch) > 1:
            self.waiting.extend(map(LoneResult, batch))
        elif batch:
            with log_context(batch[0].claim):
                self._blame_one(batch[0], is_guilty=is_guilty)

    def _blame_one(self, result: StepResult, *, is_guilty: bool) -> None:
        if is_guilty:
            self._dropped.add(claim_key(result.claim))
            LOG.error("Task %s is dropped: not even its failure can be stored", result.claim.task.id)
        else:
            LOG.error("The result of task %s cannot be stored", result.claim.task.id)
            self.waiting.appendleft(LoneResult(result, is_guilty=True))


def _write(database: Database, write: Callable[[Connection, Sequence[T]], R], chunk: Sequence[T]) -> R:
    return database.write(lambda conn: write(conn, chunk), brief=True)


Late = tuple[Claim, StepResult | None]
Timers = Sequence[TimerQueue[typing.Any]]


class Faults:
    """Keeps the database and this process agreed on claims.  For the thread of the work loop.

    It requeues claims, answers for those that are not ours, and resolves results that come after their claims
    were lost: the resources that such a step has made must not be forgotten.

    :param grace: seconds in which running tasks of a stack that fails may end.
    :ivar unstorable: results that are tried alone.
    :ivar late: results of claims that are not ours any more; None: the step ended without one.
    :ivar suspects: hinted tasks one of which has a damaged row: each is claimed alone.
    :ivar locked_tasks: hinted tasks whose rows are locked.
    :ivar timers: timers of all retries.
    :ivar late_timers: those of late results, which are retried without a name, too.
    """

    def __init__(
        self,
        database: Database,
        claims: Claims,
        executor: StepExecutor,
        steps: Steps,
        *,
        hints: Hints,
        grace: float,
        metrics: WorkMetrics,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._database = database
        self._claims = claims
        self._executor = executor
        self._hints = hints
        self._grace = grace
        self._metrics = metrics
        self._clock = clock
        self._uncertain = False
        self.unstorable = UnstorableResults(steps, monotonic)
        self._unfinished: collections.deque[ClaimKey] = collections.deque()
        self._lost: set[ClaimKey] = set()
        self.late: collections.deque[Late] = collections.deque()
        self.suspects: collections.deque[TaskId] = collections.deque()
        self.locked_tasks: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)
        self._locked_claims: LockedOut[ClaimKey] = LockedOut(monotonic, lambda key: key)
        self._locked_answers: LockedOut[ClaimKey] = LockedOut(monotonic, lambda key: key)
        self._locked_losses: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)
        self._locked_late: LockedOut[Late] = LockedOut(monotonic, lambda late: claim_key(late[0]))
        self._locked_hung: LockedOut[Claim] = LockedOut(monotonic, claim_key)
        self.late_timers: Timers = (self._locked_late.retries,)
        self.timers: Timers = (
            *self.late_timers,
            self.unstorable.retries,
            self.locked_tasks.retries,
            self._locked_claims.retries,
            self._locked_answers.retries,
            self._locked_losses.retries,
            self._locked_hung.retries,
        )

    def doubt(self) -> None:
        """Compare the claims with the database soon: some may have been made, or lost, unseen."""
        self._uncertain = True

    def set_aside(
        self, who: Claimant, hinted: Sequence[TaskId], error: DamagedRow, *, with_results: bool
    ) -> None:
        """Have hinted tasks claimed one by one; end the stack of the one whose row is damaged.

        :param with_results: whether results were to be stored with the claims; they are retried alone.
        """
        if with_results or len(hinted) > 1:
            self.suspects.extend(hinted)
            return
        for task_id in hinted:
            LOG.error("Task %s cannot be read, its stack fails: %s", task_id, error)
            fail = functools.partial(
                fail_unreadable,
                task_id=task_id,
                why=str(error),
                by=who.host,
                now=self._clock(),
                grace=self._grace,
            )
            announce_timed_out(self._hints, self._database.write(fail))

    def give_up(self, claimed: ClaimedTask) -> None:
        """Let `reconcile` requeue a claim: no step could start for it, or it ended without a result."""
        self._unfinished.append(claimed.key)
        self._note_lost(claimed)

    def _note_lost(self, claimed: ClaimedTask) -> None:
        """Remember that nobody knows how far the claim's step has come, if one has started."""
        if claimed.has_run:
            self._lost.add(claimed.key)

    def repair(self) -> None:
        """Let go of claims that an error in the work loop has lost; `reconcile` requeues them."""
        active = {claimed.key for claimed in self._executor.running()}
        # Read after those that run: a step that ends meanwhile is in one of them.
        active |= {claimed.key for claimed, _ in list(self._executor.ended)}
        active |= {claim_key(result.claim) for result in self._claims.results}
        active |= {key for key, _ in (*self._claims.polls.items(), *self._claims.due_polls.items())}
        active |= self.unstorable.claims()
        self._uncertain = True
        lost = [claimed for claimed in self._claims.all() if claimed.key not in active]
        for claimed in lost:
            self._note_lost(claimed)
            self._claims.remove(claimed, ClaimEvent.LOSE)
        LOG.warning("The work loop continues after an error, %d claims are requeued", len(lost))

    def reconcile(self, who: Claimant | None) -> None:
        """Bring the database up to date, and compare the claims with it where they are in doubt.

        :raises Unavailable: the rest is kept, and retried at the next call.
        """
        if who is not None:
            self._reconcile_claims(who)
            if self._executor.quarantine.cleared or self._locked_losses.names:
                self._forget_losses(who)
        if self.late or self._locked_late.names:
            self._resolve_late()  # Also without a name: we may never be in the ring again.
        if who is not None and (self._claims.hung or self._locked_hung.names):
            self._record_hung(who)

    def requeue(self, claims: Sequence[ClaimKey]) -> None:
        """Let others claim these tasks.

        :raises Unavailable: the claims are ours still, and are requeued at the next call.
        """
        now = self._clock()

        def release(conn: Connection, chunk: Sequence[ClaimKey]) -> ReadyTasks:
            return member_claims.release(conn, chunk, now=now, lost=self._lost_of(chunk))

        for chunk, freed in self._locked_claims.run(self._database, claims, release):
            self._lost.difference_update(chunk)
            for key in chunk:
                if (claimed := self._claims.get(key)) is not None:
                    self._claims.remove(claimed, ClaimEvent.LOSE)
            announce(self._hints, freed)

    def _lost_of(self, claims: Sequence[ClaimKey]) -> set[TaskId]:
        return {task_id for task_id, attempt in claims if (task_id, attempt) in self._lost}

    def _reconcile_claims(self, who: Claimant) -> None:
        """Requeue claims in our name that are unfinished, or unknown here, and answer for those not ours."""
        if self._unfinished or self._locked_claims.names:
            self.requeue([self._unfinished.popleft() for _ in range(len(self._unfinished))])
        if self._uncertain:
            claimed = self._database.read(lambda conn: tasks.claimed_by(conn, who.member))
            keys = [(task_id, attempt) for task_id, attempt, _ in claimed]
            if unknown := [key for key in keys if self._claims.get(key) is None]:
                self.requeue(unknown)
            self._lost.intersection_update(keys)
            self._uncertain = False
        if self._claims.unanswered or self._locked_answers.names:
            self._answer(who)

    def _answer(self, who: Claimant) -> None:
        """Store of claims that we were asked to cancel, and do not hold, that nobody has to wait for us."""
        now = self._clock()
        unanswered = list(self._claims.unanswered)
        self._claims.unanswered.clear()

        def answer(conn: Connection, chunk: Sequence[ClaimKey]) -> ReadyTasks:
            over = [key for key in chunk if not self._executor.runs(key)]
            lost = self._lost_of(chunk)
            return member_claims.answer(conn, who.member, requested=chunk, over=over, lost=lost, now=now)

        for chunk, freed in self._locked_answers.run(self._database, unanswered, answer):
            announce(self._hints, freed)
            self._metrics.not_held(len(chunk))

    def _forget_losses(self, who: Claimant) -> None:
        """Forget the losses of tasks whose steps have ended without a result to be stored."""
        cleared = self._executor.quarantine.cleared
        task_ids = [cleared.popleft() for _ in range(len(cleared))]
        for _ in self._locked_losses.run(
            self._database, task_ids, lambda conn, chunk: losses.forget(conn, chunk, who.member)
        ):
            pass

    def _resolve_late(self) -> None:
        """Have the resources of late results removed, unless they are needed."""
        self.late.extend(self._locked_late.due())
        while self.late:
            claim, result = self.late.popleft()
            try:
                self._resolve(claim, result)
            except RowLocked:
                self._locked_late.retry_later((claim, result))
                continue
            except (Unavailable, MemoryError):
                self.late.appendleft((claim, result))
                raise
            self._locked_late.done((claim, result))
            self._metrics.refused()

    def _resolve(self, claim: Claim, result: StepResult | None) -> None:
        if self._executor.runs(claim_key(claim)):
            # It is the result of a detached step's task: the step hangs still.
            self._claims.hung.append(claim)
            return
        with log_context(claim):
            announce(self._hints, resolve_late(self._database, claim, result, now=self._clock()))

    def _record_hung(self, who: Claimant) -> None:
        """Store which steps hang whose claims are not ours any more.

        If this process dies before they return, others search for the resources that they have made.
        """
        hung = self._claims.hung
        hung.extend(self._locked_hung.due())
        while hung:
            claim = hung[0]
            try:
                if self._executor.runs(claim_key(claim)):
                    with log_context(claim):
                        record_hung(self._database, claim, who.member, now=self._clock())
            except RowLocked:
                self._locked_hung.retry_later(claim)
            else:
                self._locked_hung.done(claim)
            # Last: where the database is unavailable, the claim stays the first.
            hung.popleft()
