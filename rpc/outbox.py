"""Messages that wait for the broker."""

import collections
import functools
import logging
import threading
import typing
from collections.abc import Callable, Sequence

from ..db.ids import MemberId, TaskId, TraversalId
from ..observe.logs import current_request

LOG = logging.getLogger(__name__)
MOST = 10_000


class Sender(typing.Protocol):
    """What takes the hints out: rpc.client.HintSender."""

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Cast to any one conductor."""

    def cancel(
        self, traversal: TraversalId, spared: Sequence[TaskId] = (), request: str | None = None
    ) -> None:
        """Cast to all conductors."""

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Cast to one conductor."""


class SendQueue:
    """Sends with a thread of its own, in the order given, so that a slow or absent broker delays neither a
    request nor the work pipeline.

    Holds at most MOST messages; beyond that the oldest are dropped.

    :param name: of the thread, and of what is sent, for the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: collections.deque[Callable[[], None]] = collections.deque()
        self._soon = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to send; returns at once."""
        self._thread.start()

    def stop(self, wait: float = 2.0) -> bool:
        """Send what waits, for `wait` seconds at the most; whether all was."""
        with self._soon:
            self._stopping = True
            self._soon.notify()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def put(self, message: Callable[[], None]) -> None:
        """Send it when its turn comes; returns at once."""
        with self._soon:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                LOG.warning("The broker takes nothing: the oldest message in the %s was dropped", self._name)
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
                LOG.exception("A message in the %s was lost", self._name)


class Outbox(SendQueue):
    """Implements traversal.hints.Hints; a hint that is lost is repeated by redelivery."""

    def __init__(self, sender: Sender) -> None:
        super().__init__("outbox")
        self._sender = sender

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """See Sender; returns at once."""
        self.put(functools.partial(self._sender.run_tasks, traversal, list(task_ids)))

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """See Sender, which is told for whose request this thread works; returns at once."""
        self.put(functools.partial(self._sender.cancel, traversal, list(spared), current_request()))

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """See Sender; returns at once."""
        self.put(functools.partial(self._sender.stop_tasks, member, list(claims)))
