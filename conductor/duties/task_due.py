"""Acts on each task whose due_at has passed."""

import functools
import logging
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.engine import Connection

from ...db.ids import MemberId, TaskId, TraversalId
from ...db.rows import ReadyTasks
from ...db.states import FINAL, TaskState
from ...db.work import cancel, clear_breakpoints, due_tasks, member_claims
from ...db.work.claim import stack_names
from ...db.work.due_tasks import DueTask
from ...engine.context import announce
from ...observe import metrics
from ...observe.logs import about, named
from ..late_steps import record_expired
from .context import DutyContext
from .slice_scan import SliceScan

LOG = logging.getLogger(__name__)
PAGE = 500
Names = Mapping[str, tuple[str, str]]
"""The name and the project's id of each stack."""


class TaskDue:
    """Acts on each due task of the slice, as its state asks for.

    It repeats hints of ready tasks, wakes parked ones, strikes resource timeouts, repeats cancels that no
    conductor has answered, releases tasks that were not stopped in time, and expires breakpoints.

    All of this is one scan by the index on due_at: its cost follows the number of due tasks.
    """

    interval = 0.5

    def __init__(self, context: DutyContext, *, page: int = PAGE) -> None:
        self._context = context
        self._page = page
        self._scan = SliceScan(context, "Due task")

    def run(self) -> None:
        """Act on all tasks that are due now."""
        now = self._context.clock()

        def read(conn: Connection, after: tuple[float, int]) -> list[DueTask]:
            return due_tasks.due(conn, now, limit=self._page, after=after)

        pages = self._scan.pages(
            read, start=(0.0, 0), position=lambda task: (task.due_at, task.id), size=self._page
        )
        for page in pages:
            tasks = [task for task in page if self._context.ring.owns(task.shard)]
            self._measure(tasks, now)
            self._repeat_hints(tasks, now)
            self._wake(tasks, now)
            self._time_out(tasks, now)
            self._expire_breakpoints(tasks, now)
            self._repeat_cancels(tasks, now)
            self._release_unstopped(tasks, now)

    def _measure(self, tasks: Iterable[DueTask], now: float) -> None:
        for task in tasks:
            if task.state not in FINAL:
                self._context.recorder.observe(metrics.DUE_LAG, task.state, value=now - task.due_at)

    def _repeat_hints(self, tasks: Iterable[DueTask], now: float) -> None:
        ready = [task for task in tasks if task.state == TaskState.READY]
        if ready:
            repeated = self._context.database.write(lambda conn: due_tasks.repeat_hints(conn, ready, now=now))
            self._context.recorder.add(metrics.HINTS_REPEATED, amount=len(repeated))
            self._announce(ready, repeated)

    def _wake(self, tasks: Iterable[DueTask], now: float) -> None:
        parked = [task for task in tasks if task.state == TaskState.PARKED]
        if parked:
            woken = self._context.database.write(lambda conn: due_tasks.wake_due(conn, parked, now=now))
            self._announce(parked, woken)

    def _time_out(self, tasks: Iterable[DueTask], now: float) -> None:
        """Strike resource timeouts; the conductor that runs the step sees its deadline by itself."""
        due = [task for task in tasks if task.state == TaskState.RUNNING and task.stop_by is None]
        grace = self._context.settings().cancel_grace
        names = self._names(due)

        def expire(conn: Connection, chunk: Sequence[DueTask]) -> list[DueTask]:
            expired_ids = cancel.expire(conn, _claims(chunk), now=now, grace=grace)
            return [task for task in chunk if task.id in expired_ids]

        for expired in self._scan.run(due, expire, key=lambda task: task.id):
            self._log(logging.INFO, expired, names, "Task %s of stack %s (%s) reached its resource timeout")

    def _repeat_cancels(self, tasks: Iterable[DueTask], now: float) -> None:
        """Ask conductors again that have not answered a cancel; one that is gone never will."""
        present = self._context.ring.present()
        silent = [task for task in tasks if _is_unanswered(task, now)]
        orphaned = [task for task in silent if task.state in FINAL and task.member not in present]
        unanswered = [task for task in silent if task not in orphaned]
        for member, tasks_of in _by_member(orphaned).items():
            self._answer_for(member, tasks_of)
        for member, tasks_of in _by_member(unanswered).items():
            self._ask_again(member, tasks_of, now)

    def _answer_for(self, member: MemberId, tasks: Sequence[DueTask]) -> None:
        def answer(conn: Connection, chunk: Sequence[DueTask]) -> None:
            cancel.answered(conn, _claims(chunk), member)

        for _ in self._scan.run(tasks, answer, key=lambda task: task.id):
            pass

    def _ask_again(self, member: MemberId, tasks: Sequence[DueTask], now: float) -> None:
        def postpone(conn: Connection, chunk: Sequence[DueTask]) -> list[TaskId]:
            return cancel.postpone(conn, _claims(chunk), now=now)

        unstopped = {
            task_id for ids in self._scan.run(tasks, postpone, key=lambda task: task.id) for task_id in ids
        }
        if unstopped:
            LOG.warning("Conductor %s has not stopped %d tasks, asking again", member, len(unstopped))
            claims = _claims(task for task in tasks if task.id in unstopped)
            self._context.hints.stop_tasks(member, claims)

    def _release_unstopped(self, tasks: Iterable[DueTask], now: float) -> None:
        """Release tasks that were not stopped in time.

        If the traversal continues, the next claim finds the task expired.
        """
        running = [task for task in tasks if task.state == TaskState.RUNNING and task.stop_by is not None]
        silent = [task for task in running if not _is_unanswered(task, now)]
        keep = functools.partial(record_expired, now=now)
        names = self._names(silent)

        def release(conn: Connection, chunk: Sequence[DueTask]) -> tuple[list[DueTask], ReadyTasks]:
            claims = member_claims.still_claimed(conn, _claims(chunk))
            claimed_ids = {task_id for task_id, _ in claims}
            freed = member_claims.release(conn, claims, now=now, on_taken=keep)
            return [task for task in chunk if task.id in claimed_ids], freed

        for released, freed in self._scan.run(silent, release, key=lambda task: task.id):
            announce(self._context.hints, freed)
            self._context.recorder.add(metrics.TAKEN_AWAY, amount=len(released))
            text = "Task %s of stack %s (%s) was not stopped in time, and was released from its conductor"
            self._log(logging.WARNING, released, names, text)

    def _names(self, tasks: Sequence[DueTask]) -> Names:
        """Return the names of the tasks' stacks, for the log."""
        stack_ids = {task.stack_id for task in tasks}
        return self._context.database.read(lambda conn: stack_names(conn, stack_ids)) if stack_ids else {}

    def _log(self, level: int, tasks: Sequence[DueTask], names: Names, text: str) -> None:
        """Log a line for each task.

        :param text: with places for the task, the stack's name and the stack's id.
        """
        for task in tasks:
            name, project = names.get(task.stack_id, ("", None))
            request = named(task.request, task.traversal)
            with about(request=request, project=project, stack=task.stack_id):
                LOG.log(level, text, task.id, name, task.stack_id)

    def _expire_breakpoints(self, tasks: Iterable[DueTask], now: float) -> None:
        """Continue at breakpoints whose time limit has passed.

        Each stack has a transaction of its own, because continuing changes the stack's row.
        """
        held_tasks: dict[TraversalId, list[TaskId]] = {}
        for task in tasks:
            if task.state == TaskState.HELD:
                held_tasks.setdefault(task.traversal, []).append(task.id)

        def expire(conn: Connection, chunk: Sequence[list[TaskId]]) -> ReadyTasks:
            return clear_breakpoints.expire(conn, chunk[0], by=None, now=now).ready

        for ready in self._scan.run(list(held_tasks.values()), expire, key=lambda ids: ids[0], together=1):
            announce(self._context.hints, ready)

    def _announce(self, tasks: Iterable[DueTask], task_ids: Iterable[TaskId]) -> None:
        traversal_of = {task.id: task.traversal for task in tasks}
        ready = ReadyTasks()
        for task_id in task_ids:
            ready.add(traversal_of[task_id], task_id)
        announce(self._context.hints, ready)


def _is_unanswered(task: DueTask, now: float) -> bool:
    """Return whether a conductor was asked to stop the task and still has time to answer."""
    if task.state == TaskState.RUNNING:
        return task.stop_by is not None and now < task.stop_by + cancel.MARGIN
    return task.state in FINAL


def _claims(tasks: Iterable[DueTask]) -> list[tuple[TaskId, int]]:
    return [(task.id, task.attempt) for task in tasks]


def _by_member(tasks: Iterable[DueTask]) -> dict[MemberId, list[DueTask]]:
    tasks_of: dict[MemberId, list[DueTask]] = {}
    for task in tasks:
        if task.member is not None:
            tasks_of.setdefault(task.member, []).append(task)
    return tasks_of
