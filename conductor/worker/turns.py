"""The tasks that wait for threads: taken in turns by project, so that none waits behind another one's plenty.

A hint names a traversal and its tasks, not a project.  Whose traversal it is shows with its first claim.
Until then it counts as a project of its own, which holds no threads.
"""

import collections
import threading
import typing
from collections.abc import Callable, Mapping, Sequence

from ...db.ids import TaskId, TraversalId

UNKNOWN = TraversalId("")
"""Owner of hints that come without a traversal: those whose rows were locked, or not reached, before."""
MOST_REMEMBERED = 10_000
"""Traversals whose project is remembered."""
T = typing.TypeVar("T")
Room = Callable[[str], int]
"""Function that returns how many more threads an owner may have now."""


class Turns(typing.Generic[T]):
    """Items of owners: one of each owner in turn, and of one owner in the order in which they came.

    To take one costs the same however many wait.  Only owners without room are passed over, and those have
    threads already, so they are few.
    """

    def __init__(self) -> None:
        self._queues: collections.OrderedDict[str, collections.deque[T]] = collections.OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def items(self) -> list[T]:
        """Return all items, in no order."""
        return [item for queue in self._queues.values() for item in queue]

    def count_of(self, owner: str) -> int:
        """Return the number of an owner's items."""
        return len(self._queues.get(owner, ()))

    def add(self, owner: str, item: T) -> None:
        """Add an item; an owner that had none has the last turn."""
        self._queues.setdefault(owner, collections.deque()).append(item)
        self._count += 1

    def take(self, most: int, room: Room) -> list[tuple[str, T]]:
        """Take out at most `most` items with their owners, of each owner as many as it has room for."""
        taken: list[tuple[str, T]] = []
        rooms: dict[str, int] = {}
        passed: list[tuple[str, collections.deque[T]]] = []
        while self._queues and len(taken) < most:
            owner, queue = self._queues.popitem(last=False)
            if owner not in rooms:
                rooms[owner] = room(owner)
            if rooms[owner] <= 0:
                passed.append((owner, queue))
                continue
            rooms[owner] -= 1
            taken.append((owner, queue.popleft()))
            if queue:
                self._queues[owner] = queue
        for owner, queue in reversed(passed):  # They keep their turns.
            self._queues[owner] = queue
            self._queues.move_to_end(owner, last=False)
        self._count -= len(taken)
        return taken

    def has_turn(self, room: Room) -> bool:
        """Return whether `take` would give anything."""
        return any(room(owner) > 0 for owner in self._queues)

    def merge(self, owner: str, into: str) -> None:
        """Make the items of an owner those of another one, behind its own."""
        for item in self._queues.pop(owner, ()):
            self._queues.setdefault(into, collections.deque()).append(item)

    def clear(self) -> None:
        """Forget all items."""
        self._queues.clear()
        self._count = 0


class Intake:
    """A bounded set of hinted tasks, taken in turns by project.  Thread-safe.

    Hints that do not fit are dropped: a hint is only a hint, and the redelivery duty repeats it.

    :param most: tasks held at the most; of one project half as many.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._ids: set[TaskId] = set()
        self._turns: Turns[TaskId] = Turns()
        self._projects: collections.OrderedDict[TraversalId, str] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    def enqueue(self, ready: Mapping[TraversalId, Sequence[TaskId]]) -> int:
        """Remember the tasks of traversals; return how many were dropped."""
        dropped = 0
        with self._lock:
            for traversal, task_ids in ready.items():
                owner = self._projects.get(traversal, traversal)
                for task_id in task_ids:
                    if task_id in self._ids:
                        continue
                    if len(self._ids) >= self._most or self._turns.count_of(owner) >= self._most // 2:
                        dropped += 1
                    else:
                        self._ids.add(task_id)
                        self._turns.add(owner, task_id)
        return dropped

    def learn(self, traversal: TraversalId, project_id: str) -> None:
        """Count the tasks of the traversal as those of its project: one of them was claimed."""
        with self._lock:
            self._projects[traversal] = project_id
            self._projects.move_to_end(traversal)
            self._turns.merge(traversal, project_id)
            if len(self._projects) > MOST_REMEMBERED:
                self._projects.popitem(last=False)

    def take(self, most: int, room: Room) -> list[tuple[str, TaskId]]:
        """Take out at most `most` tasks in turns, each with its project.

        Before the first claim of a traversal, the traversal stands for the project.
        """
        with self._lock:
            taken = self._turns.take(most, room)
            self._ids.difference_update(task_id for _, task_id in taken)
        return taken

    def has_turn(self, room: Room) -> bool:
        """Return whether a task waits whose project has room."""
        with self._lock:
            return self._turns.has_turn(room)

    def clear(self) -> None:
        """Forget all hints: the conductor drains."""
        with self._lock:
            self._ids.clear()
            self._turns.clear()
