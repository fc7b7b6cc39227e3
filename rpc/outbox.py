"""Queues messages that wait for the broker.

futurist's pool is no replacement: a full one rejects the newest message, but here the oldest is worth least;
and its shutdown waits for an unavailable broker without a limit.
"""

import collections
import functools
import logging
import threading
import time
import typing
from collections.abc import Callable, Mapping, Sequence

from ..db.ids import TaskId, TraversalId
from .client import HintSender
from .contract import Hint

LOG = logging.getLogger(__name__)
MOST = 10_000
SHARED_TASKS = 16
"""Tasks in a message of several traversals from which on the next task gets another one."""


class SendQueue:
    """Sends messages in order, with a thread of its own.

    So a slow or unavailable broker delays neither a request nor the work loop.

    It holds MOST messages at most, and drops the oldest beyond that.

    :param name: of the thread, and of the messages in the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: collections.deque[Callable[[], None]] = collections.deque()
        self._soon = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to send; returns at once.

        The process may be a fork of the one that has made the queue; a thread could not be started there.
        """
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self, wait: float = 2.0) -> bool:
        """Send the messages that wait, for `wait` seconds at most; return whether all was sent."""
        with self._soon:
            self._stopping = True
            self._soon.notify()
        if self._thread is None:
            return not self._waiting
        self._thread.join(wait)
        return not self._thread.is_alive()

    def put(self, message: Callable[[], None]) -> None:
        """Queue a message; returns at once."""
        with self._soon:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                LOG.warning("The broker is unavailable, dropping the oldest message of the %s", self._name)
            self._waiting.append(message)
            self._soon.notify()

    def _run(self) -> None:
        while True:
            with self._soon:
                self._soon.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                send = self._waiting.popleft()
            try:
                send()
            except Exception:  # top of a thread: one message that cannot be sent must not stop the others
                LOG.exception("A message of the %s was lost", self._name)


class HintChannel(typing.Protocol):
    """A way for hints out of this process, such as a bus."""

    def send(self, hint: Hint) -> None:
        """Send a hint, or lose it, as client.HintSender does."""


class Outbox(HintSender):
    """Sends hints when their turn comes; redelivery repeats a hint that is lost.

    To cast a message takes most of the processor time of a hint.  So hints of single tasks that come soon
    after each other can share one: those of all requests of a process.

    :param gather: seconds after a message for which hints gather for the next one, unless that is full.  The
        first one is sent at once.  0: no hint waits for others, and each has a message of its own.
    :param monotonic: seconds that never jump.
    """

    def __init__(
        self,
        channel: HintChannel,
        *,
        gather: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._channel = channel
        self._gather = gather
        self._monotonic = monotonic
        self._sleep = sleep
        self._queue = SendQueue("outbox")
        self._lock = threading.Lock()
        self._shared: dict[TraversalId, list[TaskId]] = {}
        self._next = float("-inf")

    def start(self) -> None:
        """Start to send; returns at once."""
        self._queue.start()

    def stop(self, wait: float = 2.0) -> bool:
        """Send the hints that wait, for `wait` seconds at most; return whether all was sent."""
        return self._queue.stop(wait)

    def send(self, hint: Hint) -> None:
        """Queue a hint to be sent; returns at once."""
        self._queue.put(functools.partial(self._channel.send, hint))

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Announce ready tasks to any one conductor, together with those of other traversals."""
        if not self._gather or len(task_ids) >= SHARED_TASKS:
            super().run_tasks(traversal, task_ids)
            return
        with self._lock:
            # A message for each conductor to get its share: a full one is complete.
            is_first = not self._shared or _is_full(self._shared)
            if is_first:
                self._shared = {}
            shared = self._shared
            shared.setdefault(traversal, []).extend(task_ids)
        if is_first:
            self._queue.put(functools.partial(self._send_shared, shared))

    def _send_shared(self, shared: dict[TraversalId, list[TaskId]]) -> None:
        with self._lock:
            is_full = _is_full(shared)
        if not is_full:
            self._sleep(max(0.0, self._next - self._monotonic()))
        with self._lock:
            if self._shared is shared:
                self._shared = {}
        self._next = self._monotonic() + self._gather
        self._channel.send(Hint("run_tasks", {"tasks": shared}))


def _is_full(shared: Mapping[TraversalId, Sequence[TaskId]]) -> bool:
    """Return whether the message of these tasks takes no more."""
    return sum(map(len, shared.values())) >= SHARED_TASKS
