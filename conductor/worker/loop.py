"""The work pipeline: hints in, claims, steps on a bounded pool, results stored in groups, hints out.

One thread, the mover, owns all state of this class and turns the wheel: `turn()` stores the results that
have come, claims as many tasks as threads are free (what a result made ready is claimed in the transaction
that stored it), hands steps to the pool, and says how long it may sleep.  Other threads only put something
into a queue and wake it.  No wait holds a thread: see timers.py; waits for others are rows.
"""

import contextlib
import logging
import threading
import time
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...db.engine import Database
from ...db.errors import RowLocked, Unavailable
from ...db.ids import MemberId, TaskId, TraversalId
from ...db.states import TaskState
from ...db.work import commit
from ...db.work.claim import Claimant
from ...db.work.commit import Exchange, Outcome
from ...db.work.losses import USUAL_MOST
from ...engine.announce import Hints, announce_all
from ...observe.recorder import SILENT, Recorder
from ..liveness import Liveness, Progress
from ..slice import Ring
from ..steps.outcomes import StepResult
from ..steps.runner import StepRunner
from .cancellation import Cancellation, CancelRequest
from .claimed import ClaimedTasks, WorkerView
from .executor import Executor, Workers
from .intake import Intake
from .metrics import WorkMetrics
from .quarantine import Quarantine
from .reconciler import LateResults, Reconciler
from .unstorable import LockedOut, UnstorableResults

LOG = logging.getLogger(__name__)
Json = typing.Any
NAME = "the mover"
LONGEST_SLEEP = 1.0
"""Seconds after which the mover looks whether it may still work, if nobody wakes it."""


@dataclass(frozen=True)
class PipelineLimits:
    """:ivar threads: steps that run at the same time.
    :ivar in_progress: tasks held at the most, those between two looks included.
    :ivar batch: results stored in one transaction at the most.
    :ivar stalled: seconds between tries while the database is away.
    :ivar cancel_grace: seconds in which a step that is asked to stop may end; then its thread is written off.
    :ivar task_losses: conductors that a task may be lost with; then it fails.
    """

    threads: int = 32
    in_progress: int = 20_000
    batch: int = 100
    stalled: float = 0.5
    cancel_grace: float = 30.0
    task_losses: int = USUAL_MOST


class Pipeline:
    """See above.

    :param wake: makes the mover call `turn` soon; called from any thread.
    :param member: our name on the ring at this moment, None if we cannot be sure of it; from any thread.
    :param clock: for instants that are stored.
    :param monotonic: for waits in this process.
    :param recorder: is told what is worth counting.
    """

    def __init__(
        self,
        *,
        database: Database,
        runner: StepRunner,
        executor: Executor,
        hints: Hints,
        clock: Callable[[], float],
        wake: Callable[[], None],
        member: Callable[[], MemberId | None],
        limits: PipelineLimits = PipelineLimits(),
        monotonic: Callable[[], float] = time.monotonic,
        recorder: Recorder = SILENT,
    ) -> None:
        self._database = database
        self._hints = hints
        self._clock = clock
        self._monotonic = monotonic
        self._wake = wake
        self._limits = limits
        self._intake = Intake()
        self._skipped: LockedOut[TaskId] = LockedOut(monotonic, lambda task_id: task_id)
        self._suspects = UnstorableResults(runner, monotonic)
        self._held = ClaimedTasks(clock, monotonic)
        self._tally = WorkMetrics(recorder)
        self._quarantine = Quarantine(database, limits.task_losses, runner.lost_too_often, monotonic)
        self._workers = Workers(
            runner=runner,
            quarantine=self._quarantine,
            executor=executor,
            wake=wake,
            member=member,
            clock=clock,
            recorder=recorder,
        )
        self._stops = Cancellation(
            self._held, self._workers, runner, clock, monotonic, limits.cancel_grace, self._tally
        )
        shared = (self._workers, self._stops, self._tally, clock, monotonic)
        self._reconciler = Reconciler(database, hints, self._held, *shared)
        self._strays = LateResults(database, hints, *shared)
        parts = (self._stops, self._suspects, self._skipped)
        self._timed = (*parts, self._reconciler, self._quarantine, self._strays)
        self._executor = executor
        self._who: Claimant | None = None
        self._broken = self._closed = False

    # -- from any thread ---------------------------------------------------------------------------

    def offer(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Hints came."""
        if dropped := self._intake.offer(task_ids):
            LOG.warning("%d hints were dropped: too many wait for a free thread", dropped)
            self._tally.dropped(dropped)
        self._wake()

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Stop what runs for a traversal that is not the current one any more, but for the spared tasks."""
        self._stops.messages.append(CancelRequest(traversal, frozenset(spared), request=request))
        self._wake()

    def stop(self, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Stop these tasks (with attempt); what is not held is answered for in the database."""
        self._stops.messages.append(CancelRequest(None, claims=tuple(claims)))
        self._wake()

    @property
    def busy(self) -> int:
        """Steps that run now, or wait for a thread; those given up do not count."""
        return self._workers.busy

    @property
    def in_progress(self) -> int:
        """Tasks held now."""
        return len(self._held)

    def view(self) -> WorkerView:
        """What it has at hand now."""
        return WorkerView(len(self._intake), self._held.all(), self._workers.running())

    # -- from the mover's thread -------------------------------------------------------------------

    def work_as(self, who: Claimant | None) -> None:
        """Claim in this name from now on; None: claim nothing.

        A change of name drops everything held under the old one: others take it over, for they see the
        old member gone, and late results are refused by its name.
        """
        if who == self._who:
            return
        self._stops.drop_all()
        # It may be a name we had before a short lapse: what it still claims we have just dropped.
        self._reconciler.uncertain = who is not None
        if who is None:
            self._intake.clear()
        else:
            self._strays.renamed()
        self._who = who

    def run_once(self) -> float | None:
        """Do all that can be done now; seconds until the next turn is due, None: until somebody wakes.

        Without a name only late results are told of: we may never be in the ring again.

        Raises whatever breaks it, but never Unavailable: while the database is away everything is kept and
        tried again.  After any other error the next turn begins with a reconciliation.
        """
        if self._broken:
            self._reconciler.repair(self._suspects.claims())
        self._broken = True
        pause = self._turn()
        self._broken = False
        return pause

    def _turn(self) -> float | None:
        self._executor.restart_threads()
        self._stops.apply(self._who)
        alone = self._suspects.next(self._who)
        results = self._checked([alone]) if alone else self._collect()
        self._start_looks()
        try:
            if self._who is not None:
                self._work(self._who, results, 0 if alone else self._free())
            self._strays.take_late()
            if self._who is not None:
                self._strays.keep(self._who)
        except Unavailable as error:
            LOG.warning("The database is away, work waits: %s", error)
            return self._limits.stalled
        return self._sleep()

    def database_answers(self) -> bool:
        """Return whether the database answers; may take long."""
        return self._reconciler.database_answers()

    def close_intake(self) -> None:
        """Claim nothing more."""
        self._closed = True
        self._intake.clear()

    def hand_over(self) -> None:
        """Give back every task that stands between two looks, for others to go on with."""
        if self._who is not None:
            self._reconciler.give_back(self._held.idle())

    # -- inside ------------------------------------------------------------------------------------

    def _work(self, who: Claimant, results: Sequence[tuple[StepResult, Outcome]], slots: int) -> None:
        self._intake.offer(self._skipped.due())
        wanted = self._intake.take(slots)
        if results or wanted:
            self._exchange(who, results, wanted, slots)
        self._reconciler.give_back_unfinished()
        self._reconciler.reconcile(who)
        self._reconciler.answer(who)
        self._quarantine.forget(who)

    def _free(self) -> int:
        """How many tasks may be claimed: a few more than threads are free, so that none ever idles."""
        spare = 0 if self._closed or self._workers.has_no_thread else self._limits.threads + 4 - self.busy
        return max(0, min(spare, self._limits.in_progress - len(self._held)))

    def _sleep(self) -> float | None:
        moments = [self._strays.late_at()]
        if self._who is not None:
            if self._workers.results or self._suspects or (len(self._intake) and self._free()):
                return 0.0
            look = None if self.busy >= 2 * self._limits.threads else self._held.next_poll()
            moments += [look, *(part.next_at() for part in self._timed)]
        first = min((at for at in moments if at is not None), default=None)
        return None if first is None else max(0.0, first - self._monotonic())

    def _collect(self) -> list[tuple[StepResult, Outcome]]:
        """Results to store."""
        waiting = self._workers.results
        return self._checked([waiting.popleft() for _ in range(min(len(waiting), self._limits.batch))])

    def _checked(self, found: Iterable[StepResult]) -> list[tuple[StepResult, Outcome]]:
        """Those to store; a mere "look again" goes to the timers at once."""
        results: list[tuple[StepResult, Outcome]] = []
        for result in found:
            task = result.claim.task
            if not self._held.has(task.id, task.attempt):
                self._workers.late.append((result.claim, result))
            elif result.outcome is None:
                self._held.poll_later(result)
            else:
                results.append((result, result.outcome))
        return results

    def _start_looks(self) -> None:
        for held, progress in self._held.due(2 * self._limits.threads - self.busy):
            assert self._who is not None
            self._workers.step(held, progress, self._who)

    def _exchange(
        self,
        who: Claimant,
        results: Sequence[tuple[StepResult, Outcome]],
        wanted: Sequence[TaskId],
        slots: int,
    ) -> None:
        now, outcomes = self._clock(), [outcome for _, outcome in results]
        try:
            with self._suspects.watch([result for result, _ in results]):
                done: Exchange = self._database.write(
                    lambda conn: commit.exchange(conn, outcomes, wanted, who=who, now=now, slots=slots),
                    brief=self._suspects.is_trying,
                )
        except Unavailable as error:
            locked = isinstance(error, RowLocked)  # The results are put off then.
            # Hints alone are not kept: they come again, and what is locked would be among them each time.
            self._put_back(() if locked else results, () if locked and not results else wanted)
            raise
        self._tally.exchanged(done.claims, wanted, began=now, ended=self._clock())
        refused = {outcome.task_id for outcome in done.refused}
        for result, outcome in results:
            if outcome.task_id in refused:
                self._workers.late.append((result.claim, result))
            else:
                self._tally.stored(result, self._held.get(outcome.task_id, outcome.attempt))
            if outcome.state == TaskState.RUNNING and outcome.task_id not in refused:
                self._held.poll_later(result)
            else:
                self._held.drop(outcome.task_id)
        for claim in done.claims:
            self._stops.replaced(claim.task.id)
            self._stops.watch(held := self._held.add(claim))
            self._workers.step(held, None, who)
        self._skipped.settle(wanted, done.locked)
        announce_all(self._hints, done.ready)

    def _put_back(self, results: Iterable[tuple[StepResult, Outcome]], wanted: Sequence[TaskId]) -> None:
        """Keep what could not be stored.  Whether it was is open: the fence makes a repetition harmless, and
        claims that were made unseen are found by the reconciler."""
        self._reconciler.uncertain = True
        self._workers.results.extend(result for result, _ in results)
        self._intake.offer(wanted)


class WorkLoop:
    """Calls `Pipeline.turn` whenever there is something to do, under the name that the ring gives.

    :param make: builds the pipeline, given the function that wakes this mover.
    :param liveness: is told of each turn.
    :param progress: says whether the database has to be asked whether it answers.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], None]], Pipeline],
        *,
        ring: Ring,
        host: str,
        liveness: Liveness,
        progress: Progress,
    ) -> None:
        self._ring = ring
        self._liveness = liveness
        self._progress = progress
        self._host = host
        self._soon = threading.Event()
        self._stop = threading.Event()
        self._draining = threading.Event()
        self._dead = False
        self.pipeline = make(self._soon.set)
        self._thread = threading.Thread(target=self._run, name="mover", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._liveness.expect(NAME, LONGEST_SLEEP)
        self._thread.start()

    def drain(self) -> None:
        """Claim nothing more, and give back what stands between two looks."""
        self._draining.set()
        self._soon.set()

    def stop(self, wait: float) -> bool:
        """Drain, wait for the steps that run until their results are stored, but no longer than `wait`
        seconds; whether all of them were."""
        self._stop.set()
        self.drain()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def kill(self) -> None:
        """End where we stand, as a killed process does: for demonstrations and tests."""
        self._dead = True
        self._soon.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._dead:
            self._soon.clear()
            self._liveness.beat(NAME)
            with self._liveness.at_work(NAME):
                pause = self._turn()
            if self._stop.is_set() and not self.pipeline.in_progress:
                self._liveness.forget(NAME)
                return
            self._soon.wait(LONGEST_SLEEP if pause is None else min(pause, LONGEST_SLEEP))

    def _turn(self) -> float | None:
        try:
            if self._progress.in_doubt and self.pipeline.database_answers():
                self._progress.proved()
            name = self._ring.member()
            self.pipeline.work_as(None if name is None else Claimant(name, self._host))
            if self._draining.is_set():
                self.pipeline.close_intake()
                self.pipeline.hand_over()
            return self.pipeline.run_once()
        except Exception:  # top of a thread: a bug in one turn must not end all work of the conductor
            with contextlib.suppress(
                MemoryError, RuntimeError
            ):  # Where memory is short, logging breaks, too.
                LOG.exception("A turn of the pipeline broke")
            return LONGEST_SLEEP
