"""The threads that run steps.

Neither concurrent.futures nor futurist can replace a thread that hangs in a call, and that is what a step may
do at any time: so the pool is our own.
"""

import collections
import enum
import logging
import threading
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)
LOG_EVERY = 60.0
"""Seconds between two log lines that say that no thread can be started."""


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
