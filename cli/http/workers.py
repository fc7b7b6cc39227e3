"""The threads that answer requests, and the order in which they take them."""

import collections
import itertools
import threading
import time
import typing
from collections.abc import Callable

from waitress.task import ThreadedTaskDispatcher

from ...template.sandbox.fair_shares import FairShares

BEGINNING = 4
"""Requests of a process that may begin side by side.

Only one of its threads computes at a time, and after each wait for a socket a thread waits for all others.
The more of them are in the middle of a request, the more switches it takes, and each costs processor time.
With fewer, one that waits for the database would hold up the others.
"""
BEGINS_FOR = 0.01
"""Seconds for which a request begins.  One that lasts longer may wait for a lock, or compute for seconds, and
others begin beside it, as many as there are threads."""


class Serviced(typing.Protocol):
    """A connection with a request."""

    def service(self) -> None:
        """Answer the request."""

    def cancel(self) -> None:
        """Drop the request."""


class _Turn:
    """A task that has a thread; the thread is free for others at its end."""

    def __init__(self, task: Serviced, end: Callable[[], None]) -> None:
        self._task = task
        self._end = end

    def service(self) -> None:
        """Answer the request; waitress calls it."""
        try:
            self._task.service()
        finally:
            self._end()

    def cancel(self) -> None:
        """Drop the request; waitress calls it."""
        self._task.cancel()


class _FairQueue:
    """The tasks that wait, by project, in place of waitress's deque.  Its user holds the lock of the workers.

    It is true while a task may be taken, and as long as there are tasks.
    """

    def __init__(
        self,
        shares: FairShares,
        on_end: Callable[[str, float], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shares = shares
        self._on_end = on_end
        self._monotonic = monotonic
        self._begun: collections.deque[float] = collections.deque()
        self._tasks: dict[str, collections.deque[tuple[int, Serviced]]] = {}
        self._arrivals = itertools.count()

    def __bool__(self) -> bool:
        return self.may_begin() and any(map(self.shares.room, self._tasks))

    def may_begin(self, count: int = 1) -> bool:
        """Return whether so many tasks may begin now, beside those that have begun within BEGINS_FOR."""
        others = BEGINNING - count + 1
        return len(self._begun) < others or self._begun[-others] <= self._monotonic() - BEGINS_FOR

    @property
    def waits(self) -> bool:
        """Return whether there is a task, also one of a project that has all of its threads."""
        return bool(self._tasks)

    def __len__(self) -> int:
        return sum(map(len, self._tasks.values()))

    def waiting_of(self, project: str) -> int:
        return len(self._tasks.get(project, ()))

    def append(self, item: tuple[str, Serviced]) -> None:
        project, task = item
        self._tasks.setdefault(project, collections.deque()).append((next(self._arrivals), task))

    def popleft(self) -> _Turn:
        project = self.shares.first_of(sorted(self._tasks, key=self._arrival_of))
        assert project is not None
        tasks = self._tasks[project]
        _, task = tasks.popleft()
        if not tasks:
            del self._tasks[project]
        self.shares.take(project)
        began = self._monotonic()
        self._begun.append(began)
        return _Turn(task, lambda: self._on_end(project, began))

    def ended(self, project: str, began: float) -> None:
        """Take back the place of a task that began at this moment."""
        self.shares.release(project)
        self._begun.remove(began)

    def _arrival_of(self, project: str) -> int:
        """Return the number of the project's oldest task."""
        return self._tasks[project][0][0]


class Workers(ThreadedTaskDispatcher):
    """Threads that take requests in fair order by project.

    :param name: the name of the threads.
    :param share: the threads of one project, see `FairShares`; None: all threads.
    """

    def __init__(self, name: str, count: int, share: int | None = None) -> None:
        super().__init__()
        self.queue = _FairQueue(FairShares(count, share=count if share is None else share), self._release)
        self._name = name
        self.set_thread_count(count)

    def start_new_thread(self, target: Callable[[int], None], thread_no: int) -> None:
        """Start a worker thread; waitress calls it."""
        name = f"{self._name}-{thread_no}"
        threading.Thread(target=target, name=name, args=(thread_no,), daemon=True).start()

    def waiting_of(self, project: str) -> int:
        """Return how many requests of a project wait, not counting those that idle threads will take."""
        with self.lock:
            return max(0, self.queue.waiting_of(project) - self.queue.shares.room(project))

    def add(self, task: Serviced, project: str = "") -> None:
        """Queue a request that counts for this project."""
        with self.lock:
            self.queue.append((project, task))
            if self.queue:
                self.queue_cv.notify()

    @property
    def waits(self) -> bool:
        """Return whether a request waits; then `look` is to be called within BEGINS_FOR."""
        return self.queue.waits

    def look(self) -> None:
        """Let a thread take a request for which others were beginning, if they are not any more."""
        with self.lock:
            if self.queue:
                self.queue_cv.notify()

    def _release(self, project: str, began: float) -> None:
        with self.lock:
            self.queue.ended(project, began)
            # This thread takes the next request itself.  Where no other one may begin, to wake another thread
            # would only let it find that out, for each request.
            if self.queue.waits and self.queue.may_begin(2):
                self.queue_cv.notify()
