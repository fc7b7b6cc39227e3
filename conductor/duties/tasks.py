"""Duties over tasks: what is due, and what a dead member has left."""

import functools
import logging
from collections.abc import Callable, Iterable

from ...db import clearing, tasks
from ...db.engine import Database
from ...db.ids import MemberId, TaskId, TraversalId
from ...db.states import TaskKind, TaskState
from ...db.tasks import DueTask
from ...traversal.hints import Hints, announce_all
from ..slice import Absentees, Ring

LOG = logging.getLogger(__name__)
PAGE = 500


class TaskDue:
    """Looks at each task of the slice whose moment has come: sends hints again, wakes what is parked, takes
    back claims whose resource timeout has struck, ends the time that a breakpoint was given, and clears away
    finished traversals.

    One scan by the index on due_at: the cost follows what is due.
    """

    interval = 0.5

    def __init__(
        self, *, database: Database, ring: Ring, hints: Hints, clock: Callable[[], float], page: int = PAGE
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._page = page

    def run(self) -> None:
        """One round over all that is due now."""
        now, after = self._clock(), (0.0, 0)
        while True:
            page = self._read(now, after)
            mine = [task for task in page if self._ring.owns(task.shard)]
            self._repeat(mine, now)
            self._wake(mine, now)
            self._expire(mine, now)
            self._lapse(mine, now)
            self._purge(mine)
            if len(page) < self._page:
                return
            after = (page[-1].due_at, page[-1].id)

    def _read(self, now: float, after: tuple[float, int]) -> list[DueTask]:
        return self._database.read(lambda conn: tasks.due(conn, now, limit=self._page, after=after))

    def _repeat(self, mine: Iterable[DueTask], now: float) -> None:
        ready = [task for task in mine if task.state == TaskState.READY]
        if ready:
            repeated = self._database.write(lambda conn: tasks.repeat_hints(conn, ready, now=now))
            self._announce(ready, repeated)

    def _wake(self, mine: Iterable[DueTask], now: float) -> None:
        parked = [task for task in mine if task.state == TaskState.PARKED]
        if parked:
            woken = self._database.write(lambda conn: tasks.wake_parked(conn, parked, now=now))
            self._announce(parked, woken)

    def _expire(self, mine: Iterable[DueTask], now: float) -> None:
        """Take back what has run too long: the next claim finds it expired, and fails or retries it."""
        running = [(task.id, task.attempt) for task in mine if task.state == TaskState.RUNNING]
        if running:
            LOG.info("Resource timeouts struck for tasks %s", [task_id for task_id, _ in running])
            freed = self._database.write(lambda conn: tasks.release(conn, running, now=now))
            announce_all(self._hints, freed)

    def _lapse(self, mine: Iterable[DueTask], now: float) -> None:
        """A stack at a time: to let go is to change its row."""
        held: dict[TraversalId, list[TaskId]] = {}
        for task in mine:
            if task.state == TaskState.HELD:
                held.setdefault(task.traversal, []).append(task.id)
        for task_ids in held.values():
            work = functools.partial(clearing.lapse, task_ids=task_ids, by=None, now=now)
            announce_all(self._hints, self._database.write(work).ready)

    def _purge(self, mine: Iterable[DueTask]) -> None:
        for task in mine:
            if task.kind == TaskKind.FINISH:
                self._database.write(functools.partial(tasks.purge_traversal, traversal=task.traversal))

    def _announce(self, seen: Iterable[DueTask], task_ids: Iterable[TaskId]) -> None:
        traversal_of = {task.id: task.traversal for task in seen}
        by_traversal: dict[TraversalId, list[TaskId]] = {}
        for task_id in task_ids:
            by_traversal.setdefault(traversal_of[task_id], []).append(task_id)
        announce_all(self._hints, by_traversal)


class Orphans:
    """Gives the claims of members that are gone back to the others: run often, and at once when the
    membership changes.

    While nothing is claimed the scan finds an empty index.
    """

    interval = 1.0

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        hints: Hints,
        clock: Callable[[], float],
        absentees: Absentees,
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._absentees = absentees

    def run(self) -> None:
        """One round over the members that hold claims."""
        claiming = frozenset(self._database.read(tasks.claiming_members))
        gone = self._absentees.gone(claiming, self._ring.present())
        for member in sorted(gone):
            self._release(member)

    def _release(self, member: MemberId) -> None:
        claimed = self._database.read(lambda conn: tasks.claims_of(conn, member))
        mine = [(task_id, attempt) for task_id, attempt, shard in claimed if self._ring.owns(shard)]
        if not mine:
            return
        LOG.warning("Conductor %s is gone, %d of its tasks go to others", member, len(mine))
        now = self._clock()
        freed = self._database.write(lambda conn: tasks.release(conn, mine, now=now))
        announce_all(self._hints, freed)
