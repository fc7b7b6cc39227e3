"""The work pipeline: hints in, claims, steps on a bounded pool, results stored in groups, hints out.

One thread, the mover, owns all state of this class and turns the wheel: `turn()` stores the results that
have come, claims as many tasks as threads are free (a task that a result made ready is claimed in the very
transaction that stored it), hands steps to the pool, and says how long it may sleep.  Threads of the pool
and of the message bus only put something into a queue and wake it.  No wait holds a thread: between two
looks a task stands in a timer queue here, and waits for others are rows in the database.
"""

import collections
import logging
import threading
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..db import commits, tasks
from ..db.claims import Claimant
from ..db.commits import Exchange, Outcome
from ..db.engine import Database
from ..db.errors import Unavailable
from ..db.ids import MemberId, TaskId, TraversalId
from ..db.states import TaskState
from ..traversal.hints import Hints, announce_all
from .attempt import StepResult
from .holdings import Held, Holdings
from .intake import Intake
from .steps import StepRunner
from .suspects import Suspects

LOG = logging.getLogger(__name__)
Json = typing.Any


class Executor(typing.Protocol):
    """What the pipeline needs of a thread pool."""

    def submit(self, fn: Callable[..., object], /, *args: object) -> object:
        """Run fn(*args) on some thread."""


@dataclass(frozen=True)
class PipelineLimits:
    """:ivar threads: steps that run at the same time.
    :ivar in_progress: tasks held at the most, those between two looks included.
    :ivar batch: results stored in one transaction at the most.
    :ivar stalled: seconds between tries while the database is away.
    """

    threads: int = 32
    in_progress: int = 20_000
    batch: int = 100
    stalled: float = 0.5


class Pipeline:
    """See the module's text.

    :param wake: makes the mover call `turn` soon; called from any thread.
    :param member: our name on the ring at this moment, None if we cannot be sure of it; from any thread.
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
    ) -> None:
        self._database = database
        self._runner = runner
        self._executor = executor
        self._hints = hints
        self._clock = clock
        self._wake = wake
        self._member = member
        self._limits = limits
        self._intake = Intake()
        self._results: collections.deque[StepResult] = collections.deque()
        self._suspects = Suspects(runner)
        self._cancels: collections.deque[tuple[TraversalId, frozenset[TaskId]]] = collections.deque()
        self._held = Holdings(clock)
        self._busy = 0
        self._counting = threading.Lock()
        self._who: Claimant | None = None
        self._uncertain = False
        self._closed = False

    # -- from any thread ---------------------------------------------------------------------------

    def offer(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Hints came."""
        dropped = self._intake.offer(task_ids)
        if dropped:
            LOG.warning("%d hints were dropped: too many wait for a free thread", dropped)
        self._wake()

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Stop what runs for a traversal that is not the current one any more, but for the spared tasks."""
        self._cancels.append((traversal, frozenset(spared)))
        self._wake()

    @property
    def busy(self) -> int:
        """Steps that run now, or wait for a thread."""
        return self._busy

    @property
    def in_progress(self) -> int:
        """Tasks held now."""
        return len(self._held)

    # -- from the mover's thread -------------------------------------------------------------------

    def work_as(self, who: Claimant | None) -> None:
        """Claim in this name from now on; None: claim nothing.

        A change of name drops everything held under the old one: others take it over, for they see the
        old member gone, and late results are refused by its name.
        """
        if who == self._who:
            return
        self._held.drop_all()
        # It may be a name we had before a short lapse: what it still claims we have just dropped.
        self._uncertain = who is not None
        if who is None:
            self._intake.clear()
        self._who = who

    def turn(self) -> float | None:
        """Do all that can be done now; seconds until the next turn is due, None: until somebody wakes.

        :raises Unavailable: never; while the database is away everything is kept and tried again.
        """
        self._apply_cancels()
        alone = self._suspects.next(self._who)
        results = self._checked([alone]) if alone else self._collect()
        self._start_looks()
        if self._who is None:
            return None
        slots = 0 if alone else self._free()
        wanted = self._intake.take(slots)
        if results or wanted or self._uncertain:
            try:
                with self._suspects.watch([result for result, _ in results]):
                    self._exchange(self._who, results, wanted, slots)
            except Unavailable as error:
                LOG.warning("The database is away, work waits: %s", error)
                self._put_back(results, wanted)
                return self._limits.stalled
        return self._sleep()

    def close_intake(self) -> None:
        """Claim nothing more."""
        self._closed = True
        self._intake.clear()

    def hand_over(self) -> None:
        """Give back every task that stands between two looks, for others to go on with."""
        if self._who is None:
            return
        self._release(self._held.idle())

    # -- inside ------------------------------------------------------------------------------------

    def _free(self) -> int:
        """How many tasks may be claimed: a few more than threads are free, so that none ever idles."""
        spare = 0 if self._closed else self._limits.threads + 4 - self._busy
        return max(0, min(spare, self._limits.in_progress - len(self._held)))

    def _sleep(self) -> float | None:
        if self._results or self._suspects or (len(self._intake) and self._free()):
            return 0.0
        return None if self._busy >= 2 * self._limits.threads else self._held.next_look()

    def _collect(self) -> list[tuple[StepResult, Outcome]]:
        """Results to store."""
        count = min(len(self._results), self._limits.batch)
        return self._checked([self._results.popleft() for _ in range(count)])

    def _checked(self, found: Iterable[StepResult]) -> list[tuple[StepResult, Outcome]]:
        """Those to store; a mere "look again" goes to the timers at once."""
        results: list[tuple[StepResult, Outcome]] = []
        for result in found:
            task = result.claim.task
            if not self._held.has(task.id, task.attempt):
                LOG.info("A late result of task %s is refused", task.id)
            elif result.outcome is None:
                self._held.look_later(result)
            else:
                results.append((result, result.outcome))
        return results

    def _start_looks(self) -> None:
        for held, progress in self._held.due(2 * self._limits.threads - self._busy):
            self._submit(held, progress)

    def _submit(self, held: Held, progress: Json) -> None:
        assert self._who is not None
        held.busy = True
        with self._counting:
            self._busy += 1
        self._executor.submit(self._step, held, progress, self._who)

    def _step(self, held: Held, progress: Json, who: Claimant) -> None:
        """In a thread of the pool.  It may have waited long, in a process that was paused: what is not ours
        any more is not begun."""
        if self._member() != who.member:
            held.stop.set()
        try:
            self._results.append(self._runner.run(held.claim, progress, held.stop, who))
        finally:
            with self._counting:
                self._busy -= 1
            self._wake()

    def _exchange(
        self,
        who: Claimant,
        results: Sequence[tuple[StepResult, Outcome]],
        wanted: Sequence[TaskId],
        slots: int,
    ) -> None:
        now, outcomes = self._clock(), [outcome for _, outcome in results]
        done: Exchange = self._database.write(
            lambda conn: commits.exchange(conn, outcomes, wanted, who=who, now=now, slots=slots)
        )
        refused = {outcome.task_id for outcome in done.refused}
        for result, outcome in results:
            if outcome.state == TaskState.RUNNING and outcome.task_id not in refused:
                self._held.look_later(result)
            else:
                self._held.drop(outcome.task_id)
        for outcome in done.refused:
            LOG.info("The result of task %s, attempt %s, is refused", outcome.task_id, outcome.attempt)
        for claim in done.claims:
            self._submit(self._held.add(claim), None)
        announce_all(self._hints, done.ready)
        if self._uncertain:
            self._reconcile(who)
            self._uncertain = False

    def _put_back(self, results: Iterable[tuple[StepResult, Outcome]], wanted: Sequence[TaskId]) -> None:
        """Keep what could not be stored.  Whether it was is open: the fence makes a repetition harmless, and
        claims that were made unseen are found by `_reconcile`."""
        self._uncertain = True
        self._results.extend(result for result, _ in results)
        self._intake.offer(wanted)

    def _reconcile(self, who: Claimant) -> None:
        """Give back claims in our name that we do not know of."""
        claimed = self._database.read(lambda conn: tasks.claims_of(conn, who.member))
        unknown = [
            (task_id, attempt) for task_id, attempt, _ in claimed if not self._held.has(task_id, attempt)
        ]
        self._release(unknown)

    def _release(self, claimed: Sequence[tuple[TaskId, int]]) -> None:
        if not claimed:
            return
        now = self._clock()
        freed = self._database.write(lambda conn: tasks.release(conn, claimed, now=now))
        for task_id, _ in claimed:
            self._held.drop(task_id)
        announce_all(self._hints, freed)

    def _apply_cancels(self) -> None:
        """Ask the steps of superseded traversals to stop; those between two looks end at once."""
        while self._cancels:
            traversal, spared = self._cancels.popleft()
            for held in self._held.of(traversal):
                if held.claim.task.id not in spared and not held.stop.is_set():
                    self._stop(held)

    def _stop(self, held: Held) -> None:
        held.stop.set()
        if not held.busy and self._who is not None:
            held.busy = True
            self._results.append(self._runner.cancelled(held.claim, self._who))
