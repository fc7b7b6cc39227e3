"""The steps that run on the threads of the pool, their quarantine, and the metrics of this work.

See db/work/losses.py for the counts of conductors that were lost.
"""

import collections
import enum
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ...db.engine import Database
from ...db.errors import Unavailable
from ...db.ids import MemberId, TaskId
from ...db.work import losses
from ...db.work.claim import Claim, Claimant
from ...observe import metrics
from ...observe.recorder import Recorder
from ...shapes import Json
from ..steps.results import StepResult, Steps
from .claimed import ClaimedTask, ClaimKey, claim_key, log_context
from .pool import Executor, NoThread

LOG = logging.getLogger(__name__)
UNSURE = 1.0
"""Seconds until a step is retried that did not run because our membership was in doubt."""
NEXT_TRY = 1.0
"""Seconds until a step is retried that has to wait for another one, or for the database."""


class Quarantine:
    """Lets steps run, those of tasks with which conductors were lost one at a time at the end.

    The threads of the pool call `run`, the work loop `leave`.

    :ivar cleared: tasks whose losses are to be forgotten, for their steps have ended without a result to
        be stored.
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
    ) -> None:
        self._steps = steps
        self._database = database
        self._most = most
        self._member = member
        self._lock = threading.Lock()
        self._alone: ClaimKey | None = None
        self.cleared: collections.deque[TaskId] = collections.deque()

    def run(self, claimed: ClaimedTask, progress: Json, who: Claimant) -> StepResult:
        """Run the step; or return that it has to be retried a little later.

        :param progress: the token to poll with, and to retry with.
        """
        claim = claimed.claim
        # It may have waited long for its thread, in a process that was paused.  It is not cancelled for that:
        # the name may be ours again before the work loop has missed it.
        if self._member() != who.member:
            return StepResult(claim, None, poll_after=UNSURE, progress=progress)
        if not claim.task.losses:
            return self._steps.run(claim, progress, claimed.stop, who)
        if len(losses.hosts(claim.task)) >= self._most:
            return self._steps.lost_too_often(claim, who)
        if not losses.is_last_chance(claim.task, self._most):
            return self._clear(self._steps.run(claim, progress, claimed.stop, who))
        wait = StepResult(claim, None, poll_after=NEXT_TRY, progress=progress)
        if not self._enter(claim):
            return wait
        try:
            if not self._announce(claim, who.member):
                return wait
            return self._clear(self._steps.run(claim, progress, claimed.stop, who))
        finally:
            self.leave(claim)

    def leave(self, claim: Claim) -> None:
        """Let the next task run alone: the step of this one has ended, or its thread was detached."""
        with self._lock:
            if self._alone == claim_key(claim):
                self._alone = None

    def _enter(self, claim: Claim) -> bool:
        with self._lock:
            if self._alone is not None:
                return False
            self._alone = claim_key(claim)
            return True

    def _announce(self, claim: Claim, member: MemberId) -> bool:
        """Store that the step runs alone now: if the conductor dies in it, the task is to blame."""
        try:
            is_claimed = self._database.write(lambda conn: losses.announce(conn, claim.task, member))
        except Unavailable as error:
            LOG.warning("Task %s waits, the database is unavailable: %s", claim.task.id, error)
            return False
        if is_claimed:
            text = "Task %s runs alone in quarantine: it was running on %s, which died or went silent"
            LOG.warning(text, claim.task.id, " and ".join(losses.hosts(claim.task)))
        return bool(is_claimed)

    def _clear(self, result: StepResult) -> StepResult:
        """Forget the losses; the transaction that stores an outcome does so by itself."""
        if result.outcome is None:
            self.cleared.append(result.claim.task.id)
        return replace(result, claim=replace(result.claim, task=replace(result.claim.task, losses=None)))


STEPS_IN_MEAN = 32
"""Steps that count in the moving average of their duration."""


class Detachment(enum.Enum):
    """The state of a step whose thread was to be detached."""

    NOT_STARTED = enum.auto()  #: it never will
    HANGS = enum.auto()  #: its thread was detached
    ENDED = enum.auto()  #: its result is in the inbox


class StepExecutor:
    """Runs the steps of claimed tasks on the threads of a pool.

    The thread of the work loop starts and detaches steps.  The threads of the pool put steps that have ended
    into the inbox, and change nothing else.

    :ivar ended: the inbox: steps that have ended, each with its result; None: it could not start, or raised.
    :ivar active: steps that run or wait for a thread, not those on detached threads; to read.
    :ivar step_seconds: how long the last steps took in the mean; 0: none has ended yet.
    :ivar refused_at: when a step could not start because no thread could be started; None: never.
    :ivar quarantine: lets the steps run.
    :param wake: makes the work loop read the inbox soon.
    """

    def __init__(
        self,
        pool: Executor,
        quarantine: Quarantine,
        *,
        wake: Callable[[], None],
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        recorder: Recorder,
    ) -> None:
        self.ended: collections.deque[tuple[ClaimedTask, StepResult | None]] = collections.deque()
        self.quarantine = quarantine
        self._pool = pool
        self._wake = wake
        self._clock = clock
        self._monotonic = monotonic
        self._recorder = recorder
        self.refused_at: float | None = None
        self.step_seconds = 0.0
        self.active: dict[ClaimKey, ClaimedTask] = {}
        self._active_of: collections.Counter[str] = collections.Counter()
        self._hung: dict[ClaimKey, ClaimedTask] = {}
        self._lock = threading.Lock()

    def running(self) -> list[ClaimedTask]:
        """Return the claims whose steps have not ended, on detached threads or not; from any thread."""
        with self._lock:
            return [*self.active.values(), *self._hung.values()]

    def runs(self, key: ClaimKey) -> bool:
        """Return whether a step of the claim has not ended, on a detached thread or not."""
        with self._lock:
            return key in self.active or key in self._hung

    def active_of(self, project: str) -> int:
        """Return how many steps of a project run or wait for a thread, not those on detached threads."""
        return self._active_of[project]

    def restart_threads(self) -> None:
        """Start the threads of the pool that could not be started before."""
        self._pool.restart_threads()

    def start(self, claimed: ClaimedTask, step: Callable[[], StepResult]) -> None:
        """Start a step; where no thread can be started, it ends at once without a result."""
        with self._lock:
            if claimed.key not in self.active:
                self._active_of[claimed.claim.project_id] += 1
            self.active[claimed.key] = claimed
        submitted = False
        try:
            claimed.job = self._pool.submit(self._run, claimed, step)
            submitted = True
        except NoThread:
            self.refused_at = self._clock()
        finally:
            if not submitted:
                self._end(claimed, None)

    def detach(self, claimed: ClaimedTask) -> Detachment:
        """Detach the thread of a step that does not stop; it is in quarantine no longer."""
        # The lock decides between this and the step's end: a step that has left `active` has put its result
        # into the inbox, and is not detached any more.
        with self._lock:
            if self.active.get(claimed.key) is not claimed:
                return Detachment.ENDED
            self._hung[claimed.key] = claimed
            self._leave(claimed)
        hangs = self._pool.detach(claimed.job)
        if not hangs:
            with self._lock:
                self._hung.pop(claimed.key, None)
        self.quarantine.leave(claimed.claim)
        return Detachment.HANGS if hangs else Detachment.NOT_STARTED

    def _run(self, claimed: ClaimedTask, step: Callable[[], StepResult]) -> None:
        """Run a step, in a thread of the pool."""
        result = None
        began = claimed.started_at = self._monotonic()
        claimed.thread = threading.get_ident()
        claimed.has_run = True
        try:
            with log_context(claimed.claim):
                result = step()
        finally:
            claimed.started_at = claimed.thread = None
            seconds = self._monotonic() - began
            self._end(claimed, result, seconds)
            self._recorder.observe(metrics.STEP, claimed.claim.task.kind, value=seconds)

    def _end(self, claimed: ClaimedTask, result: StepResult | None, seconds: float | None = None) -> None:
        with self._lock:
            if seconds is not None:
                self.step_seconds += (seconds - self.step_seconds) / STEPS_IN_MEAN
            self._leave(claimed)
            self._hung.pop(claimed.key, None)
            self.ended.append((claimed, result))
        self._wake()

    def _leave(self, claimed: ClaimedTask) -> None:
        """Count a step no more as one of its project."""
        if self.active.pop(claimed.key, None) is None:
            return
        project = claimed.claim.project_id
        self._active_of[project] -= 1
        if not self._active_of[project]:
            del self._active_of[project]


@dataclass(frozen=True)
class WorkMetrics:
    """The numbers of the work loop.  For its thread; any thread may call `dropped`."""

    recorder: Recorder

    def dropped(self, hints: int) -> None:
        """Count hints that did not fit into the intake."""
        self.recorder.add(metrics.HINTS_DROPPED, amount=hints)

    def exchanged(
        self, claims: Sequence[Claim], hinted: Collection[TaskId], *, began: float, seconds: float
    ) -> None:
        """Record how long a transaction took, and how long hinted tasks were ready before."""
        self.recorder.observe(metrics.COMMIT, value=seconds)
        ids = set(hinted)
        for task in (claim.task for claim in claims):
            if task.id in ids and task.ready_at is not None:
                self.recorder.observe(metrics.CLAIM_WAIT, value=began + seconds - task.ready_at)

    def stored(self, result: StepResult, claimed: ClaimedTask | None) -> None:
        """Count a result that was stored."""
        outcome = result.outcome
        task = result.claim.task
        assert outcome is not None
        self.recorder.add(metrics.RESULTS, task.kind, outcome.state)
        if result.timed_out:
            self.recorder.add(metrics.TIMEOUTS, "resource")
        if claimed is not None and claimed.stop.is_set():
            self.recorder.add(metrics.CANCELS_ANSWERED, "given_up" if result.detached else "stopped")

    def cancel_requested(self) -> None:
        """Count a task that is cancelled."""
        self.recorder.add(metrics.CANCELS_ASKED)

    def not_held(self, claims: int) -> None:
        """Count tasks that were to be cancelled, and are not ours."""
        self.recorder.add(metrics.CANCELS_ANSWERED, "not_held", amount=claims)

    def refused(self) -> None:
        """Count a late result."""
        self.recorder.add(metrics.REFUSED)
