"""Steps on threads: handed to the pool, brought back as results, or given up."""

import collections
import enum
import logging
import threading
import time
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

Json = typing.Any
LOG = logging.getLogger(__name__)
LOG_EVERY = 60.0
"""Seconds between two log lines that say that no thread can be started."""
NO_THREAD_FOR = 5.0
"""Seconds for which nothing is claimed after a thread could not be started."""
UNSURE = 1.0
"""Seconds until a step is tried again that was not begun, for we could not be sure of our name."""


class NoThread(Exception):
    """No thread can be started, and none is there: memory, or the number of processes, is exhausted."""


def start_thread(work: Callable[[], None]) -> None:
    """Run it in a new thread.

    :raises RuntimeError: there can be no more threads.
    """
    threading.Thread(target=work, name="step", daemon=True).start()


class _State(enum.Enum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    LOST = enum.auto()
    OVER = enum.auto()


class PoolJob:
    """A call that was given to the pool."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.state = _State.WAITING


class ThreadPool:
    """At most `threads` threads that are not written off; each is begun when it is first needed.

    The threads are daemons: one that hangs does not hold the process at its end.  Thread-safe.

    :param start: runs a function in a new thread.
    """

    def __init__(
        self,
        threads: int,
        *,
        start: Callable[[Callable[[], None]], None] = start_thread,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = threads
        self._start = start
        self._monotonic = monotonic
        self._logged: float | None = None
        self._short = False
        self._soon = threading.Condition()
        self._jobs: collections.deque[PoolJob] = collections.deque()
        self._alive = self._idle = self._lost = 0
        self._closed = False

    @property
    def lost(self) -> int:
        """Threads that were written off and have not come back."""
        return self._lost

    @property
    def short_of_threads(self) -> bool:
        """Whether the last thread that was needed could not be started."""
        return self._short

    def submit(self, fn: Callable[..., object], /, *args: object) -> PoolJob:
        """Run fn(*args) on some thread, in the order of the calls.

        :raises RuntimeError: the pool is shut down.
        :raises NoThread: there is no thread that would ever run it; where there are some, it waits for them.
        """
        job = PoolJob(lambda: fn(*args))
        with self._soon:
            if self._closed:
                raise RuntimeError("the pool is shut down")
            self._jobs.append(job)
            self._begin_thread()
            if not self._alive:
                self._jobs.remove(job)
                raise NoThread("no thread can be started")
            self._soon.notify()
        return job

    def restart_threads(self) -> None:
        """Start the threads that could not be started before; the mover calls it once in a while."""
        with self._soon:
            for _ in range(len(self._jobs) if self._short else 0):
                if not self._begin_thread():
                    return

    def write_off(self, job: PoolJob) -> bool:
        """Count on the job's end no longer: another thread takes the place of the one that runs it; one that
        has not begun never does: False."""
        with self._soon:
            begun = job.state != _State.WAITING
            if not begun:
                job.state = _State.OVER
                self._jobs.remove(job)
            elif job.state == _State.RUNNING:
                job.state = _State.LOST
                self._alive -= 1
                self._lost += 1
                self._begin_thread()
            return begun

    def shutdown(self) -> None:
        """Begin no further job; returns at once."""
        with self._soon:
            self._closed = True
            self._jobs.clear()
            self._soon.notify_all()

    def _begin_thread(self) -> bool:
        """Start a thread if one is needed; whether one was started.  It counts once it is there."""
        self._short = False
        if len(self._jobs) <= self._idle or self._alive >= self._most:
            return False
        try:
            self._start(self._work)
        except (RuntimeError, MemoryError) as error:
            self._short = True
            self._log(error)
            return False
        self._alive += 1
        return True

    def _log(self, error: Exception) -> None:
        now = self._monotonic()
        if self._logged is None or now - self._logged >= LOG_EVERY:
            self._logged = now
            LOG.error("No thread can be started, %d of %d are there: %s", self._alive, self._most, error)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not self._run(job):
                return

    def _run(self, job: PoolJob) -> bool:
        """Whether the thread goes on: one that was replaced, or in which the job broke, does not."""
        ended = False
        try:
            job.call()
            ended = True
        finally:
            with self._soon:
                lost, job.state = job.state == _State.LOST, _State.OVER
                self._lost -= lost
                if not (ended or lost):
                    self._alive -= 1
                    self._begin_thread()
        return not lost

    def _next(self) -> PoolJob | None:
        with self._soon:
            self._idle += 1
            self._soon.wait_for(lambda: self._jobs or self._closed)
            self._idle -= 1
            if not self._jobs:
                self._alive -= 1
                return None
            job = self._jobs.popleft()
            job.state = _State.RUNNING
            return job


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
