"""Edges of a graph of tasks; pure."""

import typing
from collections.abc import Hashable, Mapping, Sequence

from ..db.ids import TaskId

K = typing.TypeVar("K", bound=Hashable)


class Edges:
    """Which tasks wait for which; an edge that is added twice counts once."""

    def __init__(self) -> None:
        self._after: dict[TaskId, dict[TaskId, None]] = {}
        self._before: dict[TaskId, int] = {}

    def add(self, first: TaskId, then: TaskId) -> None:
        """Let `then` wait for `first`."""
        successors = self._after.setdefault(first, {})
        if then not in successors:
            successors[then] = None
            self._before[then] = self._before.get(then, 0) + 1

    def after(self, task_id: TaskId) -> list[TaskId]:
        """Return the tasks that wait for this one."""
        return list(self._after.get(task_id, ()))

    def count_before(self, task_id: TaskId) -> int:
        """Return how many tasks this one waits for."""
        return self._before.get(task_id, 0)


def without_cycles(needs: Mapping[K, Sequence[K]]) -> dict[K, list[K]]:
    """Return the same needs without those that close a cycle, and without unknown ones.

    A template's graph has no cycle, but stored rows may have one: an update that reverses a dependency and
    fails half-way leaves both directions.
    """
    kept: dict[K, list[K]] = {}
    done: set[K] = set()
    for start in needs:
        above: set[K] = set()
        trail: list[tuple[K, list[K]]] = []
        if start not in done:
            trail.append((start, [other for other in needs[start] if other in needs]))
            above.add(start)
        while trail:
            node, left = trail[-1]
            if not left:
                trail.pop()
                above.discard(node)
                done.add(node)
                continue
            other = left.pop(0)
            if other in above:
                continue
            kept.setdefault(node, []).append(other)
            if other not in done:
                trail.append((other, [more for more in needs[other] if more in needs]))
                above.add(other)
    return {node: kept.get(node, []) for node in needs}
