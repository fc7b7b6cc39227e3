"""The inbox of the work loop for messages: hints that wait for a free thread, and requests to cancel."""

import collections
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ...db.ids import TaskId, TraversalId
from .claimed import ClaimKey


@dataclass(frozen=True)
class CancelRequest:
    """A message that asks to cancel tasks.

    :ivar traversal: cancel all tasks of it but the spared ones; None: cancel the claims.
    :ivar claims: are answered for if they are not ours.
    :ivar request: the id of the user's request that cancels, if it is known.
    """

    traversal: TraversalId | None
    spared: frozenset[TaskId] = frozenset()
    claims: tuple[ClaimKey, ...] = ()
    request: str | None = None


class Intake:
    """A bounded set of task ids, first in first out, and the cancel requests.  Thread-safe.

    Hints that do not fit are dropped: a hint is only a hint, and the redelivery duty repeats it.

    :ivar ids: the hinted tasks; to read.
    :ivar cancels: any thread appends to it; the work loop takes from it.
    :param most: ids held at the most.
    """

    def __init__(self, most: int = 100_000) -> None:
        self.cancels: collections.deque[CancelRequest] = collections.deque()
        self._most = most
        self.ids: dict[TaskId, None] = {}
        self._lock = threading.Lock()

    def enqueue(self, task_ids: Iterable[TaskId]) -> int:
        """Remember the ids; return how many were dropped."""
        dropped = 0
        with self._lock:
            for task_id in task_ids:
                if len(self.ids) >= self._most:
                    dropped += task_id not in self.ids
                else:
                    self.ids[task_id] = None
        return dropped

    def take(self, most: int) -> list[TaskId]:
        """Take out at most `most` ids, oldest first."""
        with self._lock:
            taken = [task_id for task_id, _ in zip(self.ids, range(max(0, most)), strict=False)]
            for task_id in taken:
                del self.ids[task_id]
        return taken

    def clear(self) -> None:
        """Forget all hints: the conductor has left the ring, or drains."""
        with self._lock:
            self.ids.clear()
