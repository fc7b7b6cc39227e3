"""Duties over tasks: what is due, and what a dead member has left."""

import functools
import logging
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db import conductors
from ...db.engine import Database
from ...db.ids import MemberId, TaskId, TraversalId, host_of
from ...db.states import FINAL, TaskKind, TaskState
from ...db.work import cancel, clear_breakpoints, orphans, tasks
from ...db.work.claim import stack_names
from ...db.work.losses import USUAL_MOST, Loss
from ...db.work.tasks import DueTask
from ...engine.announce import Hints, announce_all
from ...observe import metrics
from ...observe.logs import about, named
from ...observe.recorder import SILENT, Recorder
from ..slice import Absentees, Ring
from ..steps.orphans import keep_leftover
from .slice_scan import Bypass

LOG = logging.getLogger(__name__)
T = typing.TypeVar("T")
Claimed = tuple[TaskId, int]
Ready = Mapping[TraversalId, Sequence[TaskId]]
PAGE = 500


class TaskDue:
    """Looks at each task of the slice whose moment has come: sends hints again, wakes what is parked, asks
    conductors again to stop what shall not run, takes back what they do not stop, ends the time that a
    breakpoint was given, and clears away finished traversals.

    One scan by the index on due_at: the cost follows what is due.

    :param grace: seconds in which a step may end whose resource timeout has struck.
    """

    interval = 0.5

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        hints: Hints,
        clock: Callable[[], float],
        grace: float,
        page: int = PAGE,
        recorder: Recorder = SILENT,
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._grace = grace
        self._page = page
        self._recorder = recorder
        self._bypass = Bypass(database, "What is due for task")
        self._purging = Bypass(database, "The finished traversal")

    def run(self) -> None:
        """One round over all that is due now."""
        now, after = self._clock(), (0.0, 0)
        while True:
            page = self._read(now, after)
            mine = [task for task in page if self._ring.owns(task.shard)]
            self._measure(mine, now)
            self._repeat(mine, now)
            self._wake(mine, now)
            self._expire(mine, now)
            self._lapse(mine, now)
            self._ask_again(mine, now)
            self._take_away(mine, now)
            self._purge(mine)
            if len(page) < self._page:
                return
            after = (page[-1].due_at, page[-1].id)

    def _measure(self, mine: Iterable[DueTask], now: float) -> None:
        for task in mine:
            if task.state not in FINAL:
                self._recorder.observe(metrics.DUE_LAG, task.state, value=now - task.due_at)

    def _read(self, now: float, after: tuple[float, int]) -> list[DueTask]:
        return self._database.read(lambda conn: tasks.due(conn, now, limit=self._page, after=after))

    def _repeat(self, mine: Iterable[DueTask], now: float) -> None:
        ready = [task for task in mine if task.state == TaskState.READY]
        if ready:
            repeated = self._database.write(lambda conn: tasks.repeat_hints(conn, ready, now=now))
            self._recorder.add(metrics.HINTS_REPEATED, amount=len(repeated))
            self._announce(ready, repeated)

    def _wake(self, mine: Iterable[DueTask], now: float) -> None:
        parked = [task for task in mine if task.state == TaskState.PARKED]
        if parked:
            woken = self._database.write(lambda conn: tasks.wake_parked(conn, parked, now=now))
            self._announce(parked, woken)

    def _expire(self, mine: Iterable[DueTask], now: float) -> None:
        """Resource timeouts strike: the conductor that runs the step knows it by itself."""
        due = [task for task in mine if task.state == TaskState.RUNNING and task.stop_by is None]
        late = self._log(logging.INFO, due, "A resource's timeout has struck: task %s")
        for _ in self._claims(late, functools.partial(cancel.expire, now=now, grace=self._grace)):
            pass

    def _claims(self, claims: Sequence[Claimed], work: Callable[..., T]) -> Iterator[T]:
        return self._bypass.run(claims, work, key=lambda claim: claim[0])

    def _ask_again(self, mine: Iterable[DueTask], now: float) -> None:
        """Conductors that have not answered; who is gone will not."""
        present = self._ring.present()
        silent = [task for task in mine if task.member is not None and _unanswered(task, now)]
        gone = [task for task in silent if task.state in FINAL and task.member not in present]
        asked = [task for task in silent if task not in gone]
        for member, claims in _by_member(gone).items():
            for _ in self._claims(claims, functools.partial(cancel.answered, member=member)):
                pass
        for member, claims in _by_member(asked).items():
            left = {
                i for ids in self._claims(claims, functools.partial(cancel.put_off, now=now)) for i in ids
            }
            if left:
                LOG.warning("Conductor %s is asked again to stop %d tasks", member, len(left))
                self._hints.stop_tasks(member, [claim for claim in claims if claim[0] in left])

    def _take_away(self, mine: Iterable[DueTask], now: float) -> None:
        """What was not stopped in time: if the traversal goes on, the next claim finds it expired."""
        running = [task for task in mine if task.state == TaskState.RUNNING and task.stop_by is not None]
        silent = [task for task in running if not _unanswered(task, now)]
        late = self._log(
            logging.WARNING, silent, "Task %s is taken away from a conductor that did not stop it"
        )
        if late:
            self._recorder.add(metrics.TAKEN_AWAY, amount=len(late))
            keep = functools.partial(keep_leftover, now=now)
            for freed in self._claims(late, functools.partial(tasks.release, now=now, taken=keep)):
                announce_all(self._hints, freed)

    def _log(self, level: int, found: Sequence[DueTask], text: str) -> list[tuple[TaskId, int]]:
        """The tasks (with attempt), after a line for each."""
        if not found:
            return []
        stack_ids = {task.stack_id for task in found}
        names = self._database.read(lambda conn: stack_names(conn, stack_ids))
        for task in found:
            _, tenant = names.get(task.stack_id, ("", None))
            with about(request=named(task.request, task.traversal), project=tenant, stack=task.stack_id):
                LOG.log(level, text, task.id)
        return [(task.id, task.attempt) for task in found]

    def _lapse(self, mine: Iterable[DueTask], now: float) -> None:
        """A stack at a time: to let go is to change its row."""
        held: dict[TraversalId, list[TaskId]] = {}
        for task in mine:
            if task.state == TaskState.HELD:
                held.setdefault(task.traversal, []).append(task.id)

        def lapse(conn: Connection, part: Sequence[list[TaskId]]) -> Ready:
            return clear_breakpoints.expire(conn, part[0], by=None, now=now).ready

        for ready in self._bypass.run(list(held.values()), lapse, key=lambda ids: ids[0], together=1):
            announce_all(self._hints, ready)

    def _purge(self, mine: Iterable[DueTask]) -> None:
        ended = [task.traversal for task in mine if task.kind == TaskKind.FINISH]

        def purge(conn: Connection, part: Sequence[TraversalId]) -> int:
            return tasks.purge_traversal(conn, part[0])

        for _ in self._purging.run(ended, purge, key=str, together=1):
            pass

    def _announce(self, seen: Iterable[DueTask], task_ids: Iterable[TaskId]) -> None:
        traversal_of = {task.id: task.traversal for task in seen}
        by_traversal: dict[TraversalId, list[TaskId]] = {}
        for task_id in task_ids:
            by_traversal.setdefault(traversal_of[task_id], []).append(task_id)
        announce_all(self._hints, by_traversal)


def _unanswered(task: DueTask, now: float) -> bool:
    if task.state == TaskState.RUNNING:
        return task.stop_by is not None and now < task.stop_by + cancel.MARGIN
    return task.state in FINAL and task.kind != TaskKind.FINISH


def _by_member(found: Iterable[DueTask]) -> dict[MemberId, list[tuple[TaskId, int]]]:
    claims: dict[MemberId, list[tuple[TaskId, int]]] = {}
    for task in found:
        if task.member is not None:
            claims.setdefault(task.member, []).append((task.id, task.attempt))
    return claims


class Orphans:
    """Gives the claims of members that are gone back to the others: run often, and at once when the
    membership changes.

    While nothing is claimed the scan finds an empty index.

    :param task_losses: conductors that a task may be lost with; then it fails.
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
        task_losses: int = USUAL_MOST,
        recorder: Recorder = SILENT,
    ) -> None:
        self._database = database
        self._ring = ring
        self._hints = hints
        self._clock = clock
        self._absentees = absentees
        self._task_losses = task_losses
        self._recorder = recorder
        self._bypass = Bypass(database, "The claim of a conductor that is gone, task")

    def run(self) -> None:
        """One round over the members that hold claims."""
        claiming = frozenset(self._database.read(tasks.claiming_members))
        gone = self._absentees.gone(claiming, self._ring.present())
        for member in sorted(gone):
            self._release(member)

    def _release(self, member: MemberId) -> None:
        self._release_leftovers(member)
        claimed = self._database.read(lambda conn: tasks.claims_of(conn, member))
        mine = [(task_id, attempt) for task_id, attempt, shard in claimed if self._ring.owns(shard)]
        if not mine:
            return
        LOG.warning("Conductor %s is gone, %d of its tasks go to others", member, len(mine))
        now = self._clock()
        orderly = self._database.read(lambda conn: conductors.stopped_cleanly(conn, member))
        loss = None if orderly else Loss(host_of(member), self._task_losses)
        release = functools.partial(tasks.release, now=now, loss=loss)
        for freed in self._bypass.run(mine, release, key=lambda claim: claim[0], together=PAGE):
            self._recorder.add(metrics.TAKEOVERS, amount=sum(map(len, freed.values())))
            announce_all(self._hints, freed)

    def _release_leftovers(self, member: MemberId) -> None:
        """What waited for steps of a conductor that is gone waits no longer."""
        waiting = self._database.read(lambda conn: orphans.of_member(conn, member))
        mine = [task_id for task_id, shard in waiting if self._ring.owns(shard)]
        if mine:
            now = self._clock()
            abandon = functools.partial(orphans.abandon, now=now, member=member)
            for freed in self._bypass.run(mine, abandon, key=str, together=PAGE):
                announce_all(self._hints, freed)
