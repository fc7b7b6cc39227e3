"""The threads that run steps, the steps that run on them, and the metrics of this work.

A step may hang in a call of its plugin at any time.  Neither concurrent.futures nor futurist can start
another thread in the place of one that hangs, or let a process end while it does: so the pool is our own.
"""

import collections
import enum
import logging
import threading
import time
import typing
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...db.ids import TaskId
from ...db.states import redelivery_delay
from ...db.work.claim import Claim
from ...observe import metrics
from ...observe.recorder import Recorder
from ..steps.results import StepResult
from .claimed import ClaimedTask, ClaimKey, log_context

LOG = logging.getLogger(__name__)
Json = typing.Any
LOG_EVERY = 60.0
"""Seconds between two log lines about threads that cannot be started."""


class NoThread(Exception):
    """No thread can be started, and none is there: memory, or the number of processes, is exhausted."""


def start_thread(function: Callable[[], None]) -> None:
    """Run the function in a new thread.

    :raises RuntimeError: there can be no more threads.
    """
    threading.Thread(target=function, name="step", daemon=True).start()


class _State(enum.Enum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    DETACHED = enum.auto()
    OVER = enum.auto()


class PoolJob:
    """A call that was given to the pool."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.call = function
        self.state = _State.WAITING


class ThreadPool:
    """At most `threads` threads, not counting the detached ones; each is started when it is first needed.

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
        self._alive = self._idle = self._hung = 0
        self._closed = False

    @property
    def hung(self) -> int:
        """Return the number of detached threads that have not returned from their calls."""
        return self._hung

    @property
    def short_of_threads(self) -> bool:
        """Return whether the last thread that was needed could not be started."""
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
            self._start_thread()
            if not self._alive:
                self._jobs.remove(job)
                raise NoThread("no thread can be started")
            self._soon.notify()
        return job

    def restart_threads(self) -> None:
        """Start the threads that could not be started before; called by the work loop in each round."""
        with self._soon:
            for _ in range(len(self._jobs) if self._short else 0):
                if not self._start_thread():
                    return

    def detach(self, job: PoolJob) -> bool:
        """Start another thread in the place of the one that runs the job.

        :return: False: the job had not started, and never will.
        """
        with self._soon:
            started = job.state != _State.WAITING
            if not started:
                job.state = _State.OVER
                self._jobs.remove(job)
            elif job.state == _State.RUNNING:
                job.state = _State.DETACHED
                self._alive -= 1
                self._hung += 1
                self._start_thread()
            return started

    def shutdown(self) -> None:
        """Start no further job; returns at once."""
        with self._soon:
            self._closed = True
            self._jobs.clear()
            self._soon.notify_all()

    def _start_thread(self) -> bool:
        """Start a thread if one is needed; return whether one was started.  It counts once it is there."""
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
        """Run the job; return whether the thread continues.

        A detached thread ends here, for another one has its place.  One in which the job raised ends, too: it
        passes the error on to `threading.excepthook`, and another thread is started.
        """
        ended = False
        try:
            job.call()
            ended = True
        finally:
            with self._soon:
                detached = job.state == _State.DETACHED
                job.state = _State.OVER
                self._hung -= detached
                if not (ended or detached):
                    self._alive -= 1
                    self._start_thread()
        return not detached

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


class Executor(typing.Protocol):
    """The thread pool as the steps need it: see ThreadPool."""

    def submit(self, fn: Callable[..., object], /, *args: object) -> typing.Any:
        """Run fn(*args) on some thread; return a handle for `detach`.

        :raises NoThread: there is none, and none can be started.
        """

    def detach(self, job: typing.Any) -> bool:
        """Replace the thread that runs the job; False: it had not started, and never will."""

    def restart_threads(self) -> None:
        """Start the threads that could not be started before."""


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
    :ivar refused_at: when a step could not start because no thread could be started; None: never.
    :param wake: makes the work loop read the inbox soon.
    """

    def __init__(
        self,
        pool: Executor,
        *,
        wake: Callable[[], None],
        clock: Callable[[], float],
        recorder: Recorder,
    ) -> None:
        self.ended: collections.deque[tuple[ClaimedTask, StepResult | None]] = collections.deque()
        self._pool = pool
        self._wake = wake
        self._clock = clock
        self._recorder = recorder
        self.refused_at: float | None = None
        self._steps: dict[ClaimKey, ClaimedTask] = {}
        self._hung: dict[ClaimKey, ClaimedTask] = {}
        self._lock = threading.Lock()

    @property
    def busy(self) -> int:
        """Return how many steps run or wait for a thread, not counting those on detached threads."""
        return len(self._steps)

    def running(self) -> list[ClaimedTask]:
        """Return the claims whose steps have not ended, on detached threads or not; from any thread."""
        with self._lock:
            return [*self._steps.values(), *self._hung.values()]

    def runs(self, key: ClaimKey) -> bool:
        """Return whether a step of the claim has not ended, on a detached thread or not."""
        with self._lock:
            return key in self._steps or key in self._hung

    def start(self, held: ClaimedTask, step: Callable[[], StepResult]) -> None:
        """Start a step; where no thread can be started, it ends at once without a result."""
        with self._lock:
            self._steps[held.key] = held
        submitted = False
        try:
            held.job = self._pool.submit(self._run, held, step)
            submitted = True
        except NoThread:
            self.refused_at = self._clock()
        finally:
            if not submitted:
                self._end(held, None)

    def detach(self, held: ClaimedTask) -> Detachment:
        """Detach the thread of a step that does not stop."""
        # The lock decides between this and the step's end: a step that has left `_steps` has put its result
        # into the inbox, and is not detached any more.
        with self._lock:
            if self._steps.get(held.key) is not held:
                return Detachment.ENDED
            self._hung[held.key] = self._steps.pop(held.key)
        if self._pool.detach(held.job):
            return Detachment.HANGS
        with self._lock:
            self._hung.pop(held.key, None)
        return Detachment.NOT_STARTED

    def _run(self, held: ClaimedTask, step: Callable[[], StepResult]) -> None:
        """Run a step, in a thread of the pool."""
        result = None
        started = self._clock()
        held.started_at = started
        held.thread = threading.get_ident()
        try:
            with log_context(held.claim):
                result = step()
        finally:
            held.started_at = held.thread = None
            self._end(held, result)
            self._recorder.observe(metrics.STEP, held.claim.task.kind, value=self._clock() - started)

    def _end(self, held: ClaimedTask, result: StepResult | None) -> None:
        with self._lock:
            self._steps.pop(held.key, None)
            self._hung.pop(held.key, None)
            self.ended.append((held, result))
        self._wake()


@dataclass(frozen=True)
class WorkMetrics:
    """The numbers of the work loop.  For its thread; any thread may call `dropped`."""

    recorder: Recorder

    def dropped(self, hints: int) -> None:
        """Count hints that did not fit into the intake."""
        self.recorder.add(metrics.HINTS_DROPPED, amount=hints)

    def exchanged(
        self, claims: Sequence[Claim], hinted: Collection[TaskId], *, began: float, ended: float
    ) -> None:
        """Record how long a transaction took, and how long claims waited since the last hint."""
        self.recorder.observe(metrics.COMMIT, value=ended - began)
        ids = set(hinted)
        for task in (claim.task for claim in claims):
            if task.id in ids and task.due_at is not None:
                ready_at = task.due_at - redelivery_delay(task.redelivered)
                self.recorder.observe(metrics.CLAIM_WAIT, value=ended - ready_at)

    def stored(self, result: StepResult, held: ClaimedTask | None) -> None:
        """Count a result that was stored."""
        outcome = result.outcome
        task = result.claim.task
        assert outcome is not None
        self.recorder.add(metrics.RESULTS, task.kind, outcome.state)
        if result.timed_out:
            self.recorder.add(metrics.TIMEOUTS, "resource")
        if held is not None and held.stop.is_set():
            self.recorder.add(metrics.CANCELS_ANSWERED, "given_up" if result.detached else "stopped")

    def asked(self) -> None:
        """Count a task that is cancelled."""
        self.recorder.add(metrics.CANCELS_ASKED)

    def not_held(self, claims: int) -> None:
        """Count tasks that were to be cancelled, and are not ours."""
        self.recorder.add(metrics.CANCELS_ANSWERED, "not_held", amount=claims)

    def refused(self) -> None:
        """Count a late result."""
        self.recorder.add(metrics.REFUSED)
