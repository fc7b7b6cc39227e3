"""The work loop: hints in, claims, steps on a bounded pool, results stored in groups, hints out.

::

      messages (any thread)                       steps that have ended (threads of the pool)
             |                                                   |
          Intake                                       StepExecutor.ended
             |                                                   |
             v                                                   v
      +------------------------------ run_once ---------------------------------+
      | receive results -> start polls -> store results and claim -> start steps |
      +--------------------------------------------------------------------------+

One thread owns all state of this package but these two inboxes.  Each round stores the results that have
come, and claims as many tasks as threads are free; a task that a result made ready is claimed in the same
transaction.  Then it starts their steps, and returns how long it may sleep.  No wait holds a thread: a task
waits for its next poll in a timer queue, and for everything else in a row.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...db.engine import Database
from ...db.errors import DamagedRow, RowLocked, Unavailable
from ...db.ids import MemberId, TaskId, TraversalId
from ...db.rows import Outcome, ReadyTasks
from ...db.work import commit
from ...db.work.claim import Claimant
from ...engine.context import Hints, announce
from ...observe.seldom import Seldom
from ..settings import ConductorSettings
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimEvent, ClaimKey, ClaimState
from .claims import CancelRequest, Claims
from .executor import Quarantine, StepExecutor, WorkMetrics
from .faults import Faults, LoneResult
from .pool import Executor
from .turns import UNKNOWN

LOG = logging.getLogger(__name__)
NO_THREAD_FOR = 5.0
"""Seconds for which nothing is claimed after a thread could not be started."""
SPARE = 4
"""Tasks claimed beyond the free threads."""
Storable = tuple[StepResult, Outcome]


@dataclass(frozen=True)
class WorkLimits:
    """The limits of one conductor's work.

    :ivar task_losses: conductors that a task may be lost with; then it fails.
    :ivar threads: steps that run at the same time.
    :ivar in_progress: tasks held at the most, those that wait for their next poll included.
    :ivar batch: results stored in one transaction at the most.
    :ivar stalled: seconds between tries while the database is unavailable.
    :ivar cancel_grace: seconds in which a step that is asked to stop may end; then its thread is detached.
    """

    task_losses: int
    cancel_grace: float
    threads: int = ConductorSettings.threads
    in_progress: int = ConductorSettings.in_progress
    batch: int = 100
    stalled: float = 0.5

    @property
    def share(self) -> int:
        """Return the threads that one project may have: all but a quarter, which others find free at once."""
        return max(1, self.threads - max(1, self.threads // 4))


@dataclass(frozen=True)
class WorkerView:
    """The tasks that the work loop has now.

    :ivar waiting: hinted tasks that wait for a free thread.
    :ivar held: claimed tasks.
    :ivar running: claims whose steps have not ended, those on detached threads included.
    """

    waiting: int
    held: Sequence[ClaimedTask]
    running: Sequence[ClaimedTask]


class WorkLoop:
    """The state of the work loop, and one round of it.

    Any thread may call `enqueue`, `cancel`, `stop`, `busy`, `in_progress` and `view`; its own the rest.

    :param wake: makes the thread call `run_once` soon; called from any thread.
    :param member: returns our name on the ring at this moment, None if it is in doubt; from any thread.
    :param clock: for instants that are stored.
    :param monotonic: for waits in this process.
    """

    def __init__(
        self,
        *,
        database: Database,
        steps: Steps,
        executor: Executor,
        hints: Hints,
        clock: Callable[[], float],
        wake: Callable[[], None],
        member: Callable[[], MemberId | None],
        limits: WorkLimits,
        metrics: WorkMetrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._hints = hints
        self._clock = clock
        self._monotonic = monotonic
        self._wake = wake
        self._limits = limits
        self._metrics = metrics
        self._executor = StepExecutor(
            executor,
            Quarantine(steps, database=database, most=limits.task_losses, member=member),
            wake=wake,
            clock=clock,
            monotonic=monotonic,
            recorder=metrics.recorder,
        )
        self._claims = Claims(
            self._executor,
            steps,
            metrics=metrics,
            clock=clock,
            monotonic=monotonic,
            grace=limits.cancel_grace,
        )
        self._faults = Faults(
            database,
            self._claims,
            self._executor,
            steps,
            hints=hints,
            grace=limits.cancel_grace,
            metrics=metrics,
            clock=clock,
            monotonic=monotonic,
        )
        self._who: Claimant | None = None
        self._broken = False
        self._seldom = Seldom(monotonic)
        self._drains = False
        self._exchange_seconds = 0.0

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
        """Claim these tasks, of which hints came, when threads are free, in turns by project."""
        if dropped := self._claims.intake.enqueue(ready):
            LOG.warning("%d hints were dropped: too many wait for a free thread", dropped)
            self._metrics.dropped(dropped)
        self._wake()

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Cancel the tasks of a superseded traversal, but for the spared ones."""
        self._claims.cancels.append(CancelRequest(traversal, frozenset(spared), request=request))
        self._wake()

    def stop(self, claims: Sequence[ClaimKey]) -> None:
        """Cancel these claims; those that are not ours are answered for in the database."""
        self._claims.cancels.append(CancelRequest(None, claims=tuple(claims)))
        self._wake()

    @property
    def busy(self) -> int:
        """Return how many steps run or wait for a thread, not counting those on detached threads."""
        return len(self._executor.active)

    @property
    def in_progress(self) -> int:
        """Return the number of claimed tasks."""
        return len(self._claims.held)

    def view(self) -> WorkerView:
        """Return the tasks that the work loop has now."""
        return WorkerView(len(self._claims.intake), self._claims.all(), self._executor.running())

    def work_as(self, who: Claimant | None) -> None:
        """Claim in this name from now on; None: claim nothing.

        A change of name drops all claims made in the old one.  Others take them over, for they see the old
        member gone; the fence refuses late results by its name.
        """
        if who == self._who:
            return
        for claimed in self._claims.all():
            self._claims.lose(claimed)
        # Hints stay: a conductor that is back in a moment claims the tasks that nobody else has claimed.
        if who is not None:
            # It may be a name we had before a short lapse: we have just dropped its claims.
            self._faults.doubt()
            # The old name counts as gone, and with it the steps that its detached threads run.
            for claimed in self._executor.running():
                if claimed.is_detached:
                    self._claims.hung.append(claimed.claim)
        self._who = who

    def run_once(self) -> float | None:
        """Do all that can be done now; return the seconds until the next round is due, None: until a wake.

        Raises whatever breaks it, but never Unavailable: while the database is unavailable everything is kept
        and retried.  After any other error the next round begins with a repair.
        """
        if self._broken:
            self._faults.repair()
            self._claims.restore_graces()
        self._broken = True
        pause = self._round()
        self._broken = False
        return pause

    def database_answers(self) -> bool:
        """Return whether the database answers; may take long."""
        try:
            self._database.ping()
        except Unavailable as error:
            if self._seldom.passes("still"):
                LOG.warning("The database is still unavailable: %s", error)
            return False
        return True

    def drain(self) -> None:
        """Claim nothing more, and requeue every task that waits for its next poll.

        :raises Unavailable: it is retried at the next call.
        """
        self._drains = True
        self._claims.intake.clear()
        if self._who is not None:
            claimed_tasks = self._claims.all()
            self._faults.requeue(
                [claimed.key for claimed in claimed_tasks if claimed.state is ClaimState.WAITING]
            )

    def _round(self) -> float | None:
        who = self._who
        if self._executor.active:
            self._executor.restart_threads()
        # Before the results: a task that waits is cancelled at once, and stored in this round.
        if self._claims.cancels or any(timer.entries for timer in self._claims.timers):
            self._claims.cancel_due(who)
        self._receive()
        # One that may break its transaction goes alone, and nothing is claimed with it.
        unstorable = self._faults.unstorable
        alone = unstorable.next(who) if who and (unstorable.waiting or unstorable.locked_out) else None
        count = min(len(self._claims.results), self._limits.batch)
        results = self._storable(
            [alone.result] if alone else [self._claims.results.popleft() for _ in range(count)]
        )
        try:
            if who is not None:
                if self._claims.polls.entries or self._claims.due_polls:
                    self._poll(who)
                self._exchange(who, results, alone)
            self._faults.reconcile(who)
        except Unavailable as error:
            if self._seldom.passes("work waits"):
                LOG.warning("The database is unavailable, work waits: %s", error)
            return self._limits.stalled
        return self._pause()

    def _receive(self) -> None:
        """Take the steps that have ended out of the inbox."""
        ended = self._executor.ended
        while ended:
            claimed, result = ended.popleft()
            was_detached = claimed.is_detached
            claimed.move(ClaimEvent.BREAK if result is None else ClaimEvent.RESULT)
            if was_detached:
                self._faults.late.append((claimed.claim, result))
            elif result is None:  # The next attempt finds the resource of this one.
                self._faults.give_up(claimed)
            elif claimed.state is not ClaimState.STORING:
                self._faults.late.append((result.claim, result))
            elif result.outcome is None:
                self._claims.poll_later(result.claim, result.poll_after, result.progress)
            else:
                self._claims.results.append(result)

    def _storable(self, results: Sequence[StepResult]) -> list[Storable]:
        """Return those whose claims are ours still; the others are late."""
        storable: list[Storable] = []
        for result in results:
            task = result.claim.task
            if self._claims.get((task.id, task.attempt)) is None:
                self._faults.late.append((result.claim, result))
            elif result.outcome is not None:
                storable.append((result, result.outcome))
        return storable

    def _start(self, claimed: ClaimedTask, progress: object, who: Claimant) -> None:
        claimed.move(ClaimEvent.START)
        if claimed.stop.is_set():
            claimed.move(ClaimEvent.STOP)
        self._executor.start(claimed, lambda: self._executor.quarantine.run(claimed, progress, who))

    def _poll(self, who: Claimant) -> None:
        """Start the polls that are due."""
        most = 2 * self._limits.threads - len(self._executor.active)
        for claimed, progress in self._claims.due(most, self._room):
            self._start(claimed, progress, who)

    def _free(self) -> int:
        """Return how many tasks may be claimed.

        They are a few more than threads are free, and as many more as the threads end while results are
        stored: so none of them ever idles.
        """
        if self._drains or self._shortage():
            return 0
        spare = self._limits.threads + self._ahead() - len(self._executor.active)
        return max(0, min(spare, self._limits.in_progress - len(self._claims.held)))

    def _shortage(self) -> float:
        """Return for how many seconds nothing is claimed still because no thread could be started."""
        refused_at = self._executor.refused_at
        since = math.inf if refused_at is None else self._clock() - refused_at
        return NO_THREAD_FOR - since if 0 <= since < NO_THREAD_FOR else 0.0

    def _ahead(self) -> int:
        """Return how many tasks may be claimed beyond the free threads."""
        if not (seconds := self._executor.step_seconds):
            return SPARE
        return SPARE + min(self._limits.batch, int(self._limits.threads * self._exchange_seconds / seconds))

    def _room(self, owner: str) -> int:
        """Return how many more steps a project may have on threads, or claimed ahead of them.

        :param owner: the project, or a traversal whose project is not known, and which has none.
        """
        return self._limits.share + self._ahead() - self._executor.active_of(owner)

    def _pause(self) -> float | None:
        """Return the seconds until something is due; None: until a wake."""
        if self._executor.ended:
            return 0.0
        timers = [*(self._faults.late_timers if self._who is None else self._faults.timers)]
        waits: list[float] = []
        if self._who is not None:
            has_results = self._claims.results or self._faults.unstorable.waiting
            has_hints = self._faults.suspects or self._claims.intake.has_turn(self._room)
            if has_results or (has_hints and self._free()):
                return 0.0
            # Nobody wakes the loop when a thread may be there again.
            if has_hints and (shortage := self._shortage()):
                waits.append(shortage)
            timers += self._claims.timers
            if len(self._executor.active) < 2 * self._limits.threads:
                if self._claims.due_polls.has_turn(self._room):
                    return 0.0
                timers.append(self._claims.polls)
        now = self._monotonic()
        waits += [max(0.0, timer.entries[0][0] - now) for timer in timers if timer.entries]
        return min(waits, default=None)

    def _exchange(self, who: Claimant, results: Sequence[Storable], alone: LoneResult | None) -> None:
        """Store the results and claim tasks in one transaction: each link of a chain costs one."""
        if self._faults.locked_tasks.names:
            self._claims.intake.enqueue({UNKNOWN: self._faults.locked_tasks.due()})
        slots = 0 if alone else self._free()
        taken = self._hinted(slots, has_results=bool(results))
        hinted = [task_id for _, task_id in taken]
        if not (results or hinted):
            return
        outcomes = [outcome for _, outcome in results]
        ended = {result.claim.project_id for result, _ in results}
        others = sum(owner not in ended for owner, _ in taken)
        try:
            is_guilty = alone is not None and alone.is_guilty
            with self._faults.unstorable.watch([result for result, _ in results], is_guilty=is_guilty):
                now = self._clock()
                began = self._monotonic()
                done: commit.Exchange = self._database.write(
                    lambda conn: commit.exchange(
                        conn, outcomes, hinted, who=who, now=now, slots=slots, others=others
                    ),
                    brief=alone is not None,
                )
        except Unavailable as error:
            self._keep(results, hinted, error)
            raise
        except DamagedRow as error:
            is_known = alone is not None and alone.is_guilty
            suspects = [outcome.task_id for outcome in outcomes] if is_known else hinted
            self._faults.set_aside(who, suspects, error, with_results=bool(results) and not is_known)
            return
        seconds = self._monotonic() - began
        self._exchange_seconds = (self._exchange_seconds + seconds) / 2
        self._metrics.exchanged(done.claims, hinted, began=now, seconds=seconds)
        self._settle(results, {outcome.task_id for outcome in done.refused})
        for claim in done.claims:
            self._start(self._claims.add(claim), None, who)
        if done.locked or self._faults.locked_tasks.times:
            self._faults.locked_tasks.settle(hinted, done.locked)
        if done.ready:
            announce(self._hints, done.ready)
        if done.woken:
            self._go_on_with(done.woken)

    def _keep(self, results: Sequence[Storable], hinted: Sequence[TaskId], error: Unavailable) -> None:
        """Keep the results and hints of a transaction that did not answer."""
        # Whether it was committed is unknown.  The fence makes a repetition of the results harmless, and
        # `Faults.reconcile` finds claims that were made unseen.
        self._faults.doubt()
        if not isinstance(error, RowLocked):
            self._claims.results.extend(result for result, _ in results)
            self._claims.intake.enqueue({UNKNOWN: hinted})
        elif results:
            # The results were put off.  Hints alone are dropped: they come again, and what is locked
            # would be among them each time.
            self._claims.intake.enqueue({UNKNOWN: hinted})

    def _hinted(self, slots: int, *, has_results: bool) -> Sequence[tuple[str, TaskId]]:
        """Take the tasks that are to be claimed; one that may break the transaction is claimed alone."""
        if suspects := self._faults.suspects:
            return [(UNKNOWN, suspects.popleft())] if slots and not has_results else []
        return self._claims.intake.take(slots, self._room) if slots else []

    def _go_on_with(self, woken: ReadyTasks) -> None:
        """Claim tasks in the next round that our transaction has woken, as far as threads are free."""
        free = self._free() - len(self._claims.intake)
        for traversal, task_ids in woken.items():
            count = max(0, min(free, len(task_ids)))
            self._claims.intake.enqueue({traversal: task_ids[:count]})
            free -= count
            announce(self._hints, {traversal: task_ids[count:]})

    def _settle(self, results: Sequence[Storable], refused: set[TaskId]) -> None:
        """Let go of the claims whose results were stored, or refused by the fence."""
        for result, outcome in results:
            claimed = self._claims.get((outcome.task_id, outcome.attempt))
            if outcome.task_id in refused:
                self._faults.late.append((result.claim, result))
            else:
                self._metrics.stored(result, claimed)
            if result.keeps_claim and outcome.task_id not in refused:
                self._claims.poll_later(result.claim, result.poll_after, result.progress)
            elif claimed is not None:
                self._claims.remove(claimed, ClaimEvent.CLOSE)
