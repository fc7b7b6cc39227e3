"""Hints that wait for a free thread."""

import threading
from collections.abc import Iterable

from ...db.ids import TaskId


class Intake:
    """A bounded set of task ids, first in first out.  Thread-safe.

    What does not fit is dropped: a hint is only a hint, and the redelivery duty repeats it.

    :param most: ids held at the most.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._ids: dict[TaskId, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    def offer(self, task_ids: Iterable[TaskId]) -> int:
        """Remember the ids; how many were dropped."""
        dropped = 0
        with self._lock:
            for task_id in task_ids:
                if len(self._ids) >= self._most:
                    dropped += task_id not in self._ids
                else:
                    self._ids[task_id] = None
        return dropped

    def take(self, most: int) -> list[TaskId]:
        """Take out at most `most` ids, oldest first."""
        with self._lock:
            taken = [task_id for task_id, _ in zip(self._ids, range(max(0, most)), strict=False)]
            for task_id in taken:
                del self._ids[task_id]
        return taken

    def clear(self) -> None:
        """Forget everything (the conductor lost its membership, or stops)."""
        with self._lock:
            self._ids.clear()
