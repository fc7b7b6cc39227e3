"""Hints that wait for the broker."""

import collections
import logging
import threading
import typing
from collections.abc import Sequence

from ..db.ids import TaskId, TraversalId

LOG = logging.getLogger(__name__)
MOST = 10_000


class Sender(typing.Protocol):
    """What takes the hints out: rpc.client.HintSender."""

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Cast to any one conductor."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Cast to all conductors."""


class Outbox:
    """Implements traversal.hints.Hints with a thread of its own, so that a slow or absent broker delays
    neither a request nor the work pipeline.

    Holds at most MOST messages; beyond that the oldest are dropped: they are hints, redelivery repeats them.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._waiting: collections.deque[tuple[str, TraversalId, Sequence[TaskId]]] = collections.deque()
        self._soon = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    def start(self) -> None:
        """Begin to send; returns at once."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> None:
        """Send what waits, for `wait` seconds at the most."""
        with self._soon:
            self._stopping = True
            self._soon.notify()
        self._thread.join(wait)

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """See Sender; returns at once."""
        self._put(("run_tasks", traversal, list(task_ids)))

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """See Sender; returns at once."""
        self._put(("cancel", traversal, list(spared)))

    def _put(self, message: tuple[str, TraversalId, Sequence[TaskId]]) -> None:
        with self._soon:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                LOG.warning("The broker takes no hints; the oldest one was dropped")
            self._waiting.append(message)
            self._soon.notify()

    def _run(self) -> None:
        while True:
            with self._soon:
                self._soon.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                method, traversal, task_ids = self._waiting.popleft()
            try:
                if method == "cancel":
                    self._sender.cancel(traversal, task_ids)
                else:
                    self._sender.run_tasks(traversal, task_ids)
            except Exception:  # top of a thread: one message that cannot be sent must not stop the others
                LOG.exception("A hint was lost")
