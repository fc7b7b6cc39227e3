"""The threads that answer requests, and the order in which they take them."""

import collections
import itertools
import logging
import threading
import typing
from collections.abc import Callable

from waitress.task import ThreadedTaskDispatcher

from ...template.sandbox.fair_shares import FairShares


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

    def __init__(self, shares: FairShares, on_end: Callable[[str], None]) -> None:
        self.shares = shares
        self._on_end = on_end
        self._tasks: dict[str, collections.deque[tuple[int, Serviced]]] = {}
        self._arrivals = itertools.count()

    def __bool__(self) -> bool:
        return any(map(self.shares.room, self._tasks))

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
        return _Turn(task, lambda: self._on_end(project))

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
        # Waitress would log each request that waits for a thread.
        self.queue_logger = logging.getLogger(f"{__name__}.queue")
        self.queue_logger.setLevel(logging.ERROR)
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
        self.add_task((project, task))

    def _release(self, project: str) -> None:
        with self.lock:
            self.queue.shares.release(project)
            # This thread takes the next request itself.  Where none waits, to wake another one would only
            # let it find that out, for each request.
            if self.queue.waits:
                self.queue_cv.notify()
