"""How the announcement of ready tasks is cut into messages."""

import typing
from collections.abc import Iterator, Mapping, Sequence

from ..db.ids import MemberId, TaskId, TraversalId

BATCH = 16
"""Task ids in one hint: enough to make the message's cost small beside the work, few enough that a wide
graph spreads over all conductors."""


class Hints(typing.Protocol):
    """Says where work is.  A hint may be lost, doubled, late or out of order."""

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Cast to any one conductor; never raises for a broker that is away: the hint is lost then."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Fan out to all conductors: stop what runs for this superseded traversal.

        :param spared: tasks of it that go on, for they do what is still wanted.
        """

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Cast to one conductor: stop these tasks (with attempt), which it has not answered for."""


def batches(task_ids: Sequence[TaskId], size: int = BATCH) -> Iterator[Sequence[TaskId]]:
    """The ids in lists of at most `size`."""
    return (task_ids[i : i + size] for i in range(0, len(task_ids), size))


def announce(hints: Hints, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
    """Cast hints for all the tasks."""
    for batch in batches(task_ids):
        hints.run_tasks(traversal, batch)


def announce_all(hints: Hints, ready: Mapping[TraversalId, Sequence[TaskId]]) -> None:
    """Cast hints for the tasks of several traversals."""
    for traversal, task_ids in ready.items():
        announce(hints, traversal, task_ids)
