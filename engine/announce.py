"""Announcements of what a committed transaction has started or stopped: hints to conductors, and the log."""

import logging
import typing
from collections.abc import Sequence
from dataclasses import dataclass

from ..db.ids import MemberId, TaskId, TraversalId
from ..db.rows import ReadyTasks, Stack
from ..observe.logs import about

LOG = logging.getLogger(__name__)
BATCH = 16
"""Task ids in one hint: enough to make the message's cost small beside the work, few enough that a wide
graph spreads over all conductors."""


class Hints(typing.Protocol):
    """The messages that point conductors to work.

    A hint may be lost, doubled, late or out of order.
    """

    def run_tasks(self, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
        """Cast to any one conductor; never raises for an unavailable broker: the hint is lost then."""

    def cancel(self, traversal: TraversalId, spared: Sequence[TaskId] = ()) -> None:
        """Fan out to all conductors: stop what runs for this superseded traversal.

        :param spared: tasks of it that continue, because their work is still needed.
        """

    def stop_tasks(self, member: MemberId, claims: Sequence[tuple[TaskId, int]]) -> None:
        """Cast to one conductor: stop these tasks (with attempt), which it has not answered for."""


@dataclass(frozen=True)
class Started:
    """A traversal that was committed.

    :ivar ready: tasks to announce: its own, and those of parents that the end of an empty plan has woken.
    :ivar superseded: older traversals of which tasks still run: the conductors are to stop them.
    :ivar spared: of these tasks those that continue.
    """

    stack: Stack
    ready: list[TaskId]
    superseded: Sequence[TraversalId] = ()
    spared: Sequence[TaskId] = ()


def announce(hints: Hints, traversal: TraversalId, task_ids: Sequence[TaskId]) -> None:
    """Cast hints for all the tasks, in batches."""
    for start in range(0, len(task_ids), BATCH):
        hints.run_tasks(traversal, task_ids[start : start + BATCH])


def announce_all(hints: Hints, ready: ReadyTasks) -> None:
    """Cast hints for the tasks of several traversals."""
    for traversal, task_ids in ready.items():
        announce(hints, traversal, task_ids)


def announce_started(hints: Hints, started: Started) -> None:
    """Log and announce a committed traversal; the log's line joins the request's id and the traversal's."""
    stack = started.stack
    with about(project=stack.tenant, stack=stack.id):
        LOG.info("Stack %s (%s): %s started as trv-%s", stack.name, stack.id, stack.action, stack.traversal)
    for traversal in started.superseded:
        hints.cancel(traversal, started.spared)
    announce(hints, stack.traversal, started.ready)
