"""The threads that run steps.

A step may hang in a call of its plugin at any time.  Neither concurrent.futures nor futurist can start
another thread in the place of one that hangs, or let a process end while it does: so the pool is our own.
"""

import collections
import enum
import logging
import threading
import time
import typing
from collections.abc import Callable

LOG = logging.getLogger(__name__)
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
    """A function that was given to the pool."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.state = _State.WAITING
        self._function: Callable[[], object] = function

    def take(self) -> Callable[[], object]:
        """Return the function, once.

        Its arguments may lead to the job.  If the job kept it, only the garbage collector would free both.
        """
        function = self._function
        del self._function
        return function


class ThreadPool:
    """At most `threads` threads, not counting the detached ones: each starts when it is needed, or by `fill`.

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

    def fill(self) -> None:
        """Start all threads now, whether there is work for them or not.

        :raises NoThread: one of them cannot be started.
        """
        with self._soon:
            while self._alive < self._most:
                if not self._start_another():
                    raise NoThread("no thread can be started")

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
        """Start a thread if one is needed; return whether one was started."""
        self._short = False
        if len(self._jobs) <= self._idle or self._alive >= self._most:
            return False
        return self._start_another()

    def _start_another(self) -> bool:
        """Start a thread; return whether one was started.  It counts once it is there."""
        try:
            self._start(self._run_jobs)
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

    def _run_jobs(self) -> None:
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
            job.take()()
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
