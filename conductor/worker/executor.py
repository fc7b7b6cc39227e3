"""Steps on threads: handed to the pool, brought back as results, or given up."""

import collections
import enum
import threading
import typing
from collections.abc import Callable

from ...db.ids import MemberId, TaskId
from ...db.work.claim import Claim, Claimant
from ...observe import metrics
from ...observe.recorder import SILENT, Recorder
from ..steps.outcomes import StepResult
from ..steps.runner import StepRunner
from .claimed import ClaimedTask, claim_lines
from .quarantine import Quarantine
from .thread_pool import NoThread

Json = typing.Any

NO_THREAD_FOR = 5.0
"""Seconds for which nothing is claimed after a thread could not be started."""
UNSURE = 1.0
"""Seconds until a step is tried again that was not begun, for we could not be sure of our name."""


class Step(enum.Enum):
    """Where a step stands that is given up."""

    NOT_BEGUN = enum.auto()
    HANGS = enum.auto()
    ENDED = enum.auto()  #: its result is there


class Executor(typing.Protocol):
    """What the work pipeline needs of a thread pool; see pool.Pool."""

    def submit(self, fn: Callable[..., object], /, *args: object) -> typing.Any:
        """Run fn(*args) on some thread; a handle for write_off.

        :raises NoThread: there is none, and none can be started.
        """

    def write_off(self, job: typing.Any) -> bool:
        """Replace the thread that runs the job; a job that has not begun never does: False."""

    def restart_threads(self) -> None:
        """Start the threads that could not be started before."""


class Workers:
    """The mover's thread starts steps and takes results; the steps run on threads of the pool.

    :ivar results: of steps that ended, to be stored.
    :ivar unfinished: claims whose steps could not begin, or have ended without a result: to be given back.
    :ivar late: of steps that ended after their tasks had been taken away or given up; None: without one.
    :param wake: makes the mover look at the results soon.
    :param member: our name on the ring at this moment, None if we cannot be sure of it; from any thread.
    """

    def __init__(
        self,
        *,
        runner: StepRunner,
        quarantine: Quarantine,
        executor: Executor,
        wake: Callable[[], None],
        member: Callable[[], MemberId | None],
        clock: Callable[[], float],
        recorder: Recorder = SILENT,
    ) -> None:
        self.results: collections.deque[StepResult] = collections.deque()
        self.unfinished: collections.deque[tuple[TaskId, int]] = collections.deque()
        self.late: collections.deque[tuple[Claim, StepResult | None]] = collections.deque()
        self._runner = runner
        self._quarantine = quarantine
        self._executor = executor
        self._wake = wake
        self._member = member
        self._clock = clock
        self._recorder = recorder
        self._busy = 0
        self._refused_at: float | None = None
        self._steps: dict[tuple[TaskId, int], ClaimedTask] = {}
        self._counting = threading.Lock()

    @property
    def busy(self) -> int:
        """Steps that run now, or wait for a thread; those given up do not count."""
        return self._busy

    @property
    def has_no_thread(self) -> bool:
        """Whether a moment ago a step could not begin, for no thread could be started."""
        return self._refused_at is not None and 0 <= self._clock() - self._refused_at < NO_THREAD_FOR

    def recount(self) -> None:
        """Count anew, after an error that may have kept a count from being corrected."""
        with self._counting:
            self._busy = sum(held.running for held in self._steps.values())

    def running(self) -> list[ClaimedTask]:
        """The tasks whose steps have not ended, those given up included; from any thread."""
        with self._counting:
            return list(self._steps.values())

    def runs(self, task_id: TaskId, attempt: int) -> bool:
        """Whether a step of that attempt has not ended, given up or not."""
        return (task_id, attempt) in self._steps

    def step(self, held: ClaimedTask, progress: Json, who: Claimant) -> None:
        """Begin the next step of a task."""
        self._begin(held, lambda: self._step(held, progress, who))

    def cancel(self, held: ClaimedTask, who: Claimant) -> None:
        """Let the resource type stop what goes on outside, for a task between two looks."""
        self._begin(held, lambda: self._runner.cancel(held.claim, who))

    def give_up(self, held: ClaimedTask) -> Step:
        """Count on the step's end no longer; where it stands."""
        with self._counting:
            if not held.running:
                return Step.ENDED
            held.running, held.given_up = False, True
            self._busy -= 1
        self._quarantine.leave(held.claim)
        if self._executor.write_off(held.job):
            return Step.HANGS
        with self._counting:
            self._steps.pop(_key(held), None)
        return Step.NOT_BEGUN

    def _begin(self, held: ClaimedTask, call: Callable[[], StepResult]) -> None:
        held.busy = held.running = True
        with self._counting:
            self._busy += 1
            self._steps[_key(held)] = held
        begun = False
        try:
            held.job = self._executor.submit(self._run, held, call)
            begun = True
        except NoThread:
            self._refused_at = self._clock()
        finally:
            if not begun:
                self._not_begun(held)

    def _not_begun(self, held: ClaimedTask) -> None:
        with self._counting:
            held.running = False
            self._busy -= 1
            self._steps.pop(_key(held), None)
        self.unfinished.append(_key(held))

    def _step(self, held: ClaimedTask, progress: Json, who: Claimant) -> StepResult:
        """It may have waited long, in a process that was paused: what is not ours any more is not begun.

        Nor is it cancelled by that, for our name may be ours again before the mover has missed it."""
        if self._member() != who.member:
            return StepResult(held.claim, None, look_after=UNSURE, progress=progress)
        claim = held.claim
        return self._quarantine.run(
            claim, who, lambda: self._runner.run(claim, progress, held.stop, who), progress
        )

    def _run(self, held: ClaimedTask, call: Callable[[], StepResult]) -> None:
        """In a thread of the pool."""
        result, began = None, self._clock()
        held.begun_at, held.thread = began, threading.get_ident()
        try:
            with claim_lines(held.claim):
                result = call()
        finally:
            self._ended(held, result)
            self._recorder.observe(metrics.STEP, held.claim.task.kind, value=self._clock() - began)

    def _ended(self, held: ClaimedTask, result: StepResult | None) -> None:
        """In a thread of the pool: the step came to a result; None: it broke, as where memory is short."""
        held.begun_at = held.thread = None
        with self._counting:
            self._steps.pop(_key(held), None)
            if held.given_up:
                self.late.append((held.claim, result))
            else:
                held.running = False
                self._busy -= 1
                if result is not None:
                    self.results.append(result)
                else:  # Another attempt looks for what this one has made.
                    self.unfinished.append(_key(held))
        self._wake()


def _key(held: ClaimedTask) -> tuple[TaskId, int]:
    return held.claim.task.id, held.claim.task.attempt
