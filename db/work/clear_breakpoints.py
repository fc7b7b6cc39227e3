"""Leaving breakpoints: one transaction that lets held tasks go on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import resources, traversals
from ..batches import chunks
from ..ids import ResourceId, TaskId, TraversalId, TraversalNumber
from ..legacy_finish_tasks import IS_TASK
from ..notifications import EventKind
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import REDELIVER_AFTER, TaskState
from . import breakpoint_rules, breakpoints, deadlines, endings
from .countdown import FinishedTask, unblock


@dataclass(frozen=True)
class Cleared:
    """:ivar ready: to be announced by hints: what goes on, what waited for it, parents' tasks woken."""

    ready: ReadyTasks = field(default_factory=ReadyTasks)


def clear(
    conn: Connection, task_ids: Iterable[TaskId], *, stepping: bool | None, by: str | None, now: float
) -> Cleared | None:
    """Let all of the tasks go on, or none: None if one of them is not held, or not any more.

    The order of locks is that of `commits`.

    :param stepping: True: whatever of the traversal still waits is held before it begins; False: it is not
        any more; None: as it was.
    :param by: host of the conductor, for the events; None: the API.
    """
    wanted = set(task_ids)
    found = _lock(conn, wanted)
    if {task.id for task in found} != wanted:
        return None
    rows = resources.by_ids(conn, [ResourceId(task.resource_id or 0) for task in found])
    _store(conn, found, now=now)
    gone = [row.id for row in rows.values() if row.id in _deleted(found)]
    resources.delete_many(conn, gone)
    for number, count in sorted(Counter(_numbers(found)).items()):
        traversals.count_held(conn, number, -count)
    for traversal in sorted({task.traversal for task in found}):
        set_stepping(conn, traversal, stepping)
    told = [(rows[i], task.hook or "") for task in found if (i := ResourceId(task.resource_id or 0)) in rows]
    breakpoints.notify(conn, EventKind.CLEARED, told, by, now)
    for stack_id, traversal in sorted({(task.stack_id, task.traversal) for task in found}):
        deadlines.resume_deadline(conn, stack_id, traversal, now=now)
    return _go_on(conn, found, by=by, now=now)


def _lock(conn: Connection, task_ids: Iterable[TaskId]) -> list[Task]:
    t = tables.task
    found: list[Task] = []
    for part in chunks(task_ids):
        held = sa.select(t).where(t.c.id.in_(part), t.c.state == TaskState.HELD).order_by(t.c.id)
        rows = conn.execute(held.with_for_update()).mappings()
        found += [Task.of(dict(row)) for row in rows]
    return found


def _store(conn: Connection, found: Sequence[Task], *, now: float) -> None:
    t = tables.task
    statement = (
        sa.update(t)
        .where(t.c.id == sa.bindparam("row_id"))
        .values(
            state=sa.bindparam("reached"),
            hook=None,
            hooks=sa.bindparam("ahead"),
            stepped=sa.false(),
            due_at=sa.bindparam("due"),
            redelivered=0,
        )
    )
    changed = [
        {
            "row_id": task.id,
            "reached": TaskState.DONE if breakpoint_rules.is_post(task.hook) else TaskState.READY,
            "ahead": {hook: given for hook, given in (task.hooks or {}).items() if hook != task.hook} or None,
            "due": None if breakpoint_rules.is_post(task.hook) else now + REDELIVER_AFTER,
        }
        for task in found
    ]
    conn.execute(statement, changed)


def _deleted(found: Sequence[Task]) -> set[int | None]:
    """Rows that were kept only to show where the breakpoint is."""
    return {task.resource_id for task in found if task.hook == breakpoint_rules.POST_DELETE}


def _numbers(found: Sequence[Task]) -> list[TraversalNumber]:
    return [task.finish_id for task in found if task.finish_id is not None]


def set_stepping(conn: Connection, traversal: TraversalId, stepping: bool | None) -> None:
    """Let what waits in the traversal be held before it begins, or not any more; None: leave it."""
    if stepping is None:
        return
    t = tables.task
    waiting = (t.c.traversal == traversal, t.c.state == TaskState.WAITING, IS_TASK)
    # Locked in id order, as everybody does.
    ids = conn.execute(sa.select(t.c.id).where(*waiting, t.c.stepped.is_not(stepping))).scalars()
    for part in chunks(ids):
        list(conn.execute(sa.select(t.c.id).where(t.c.id.in_(part)).order_by(t.c.id).with_for_update()))
        conn.execute(sa.update(t).where(t.c.id.in_(part)).values(stepped=stepping))


def _go_on(conn: Connection, found: Sequence[Task], *, by: str | None, now: float) -> Cleared:
    ready = {task.id: task.traversal for task in found if not breakpoint_rules.is_post(task.hook)}
    ended = [task for task in found if breakpoint_rules.is_post(task.hook)]
    free, _ = breakpoints.go_on(
        conn, unblock(conn, [FinishedTask(task) for task in ended], now=now), by=by, now=now
    )
    ready.update(free)
    for stack_id, traversal in sorted({(task.stack_id, task.traversal) for task in found}):
        breakpoints.show_on_stack(conn, stack_id, traversal)
    numbers = {*_numbers(found), *deadlines.newer_traversals(conn, ended)}
    ready.update(_end(conn, numbers, by=by, now=now))
    return Cleared(_by_traversal(ready))


def _end(
    conn: Connection, numbers: Iterable[TraversalNumber], *, by: str | None, now: float
) -> dict[TaskId, TraversalId]:
    """End the traversals of which nothing is left; parents' tasks that this has woken."""
    woken: dict[TaskId, TraversalId] = {}
    for number in sorted(numbers):
        done = endings.finish(conn, number, by=by, now=now)
        if done is not None:
            woken.update(done.woken)
    return woken


def _by_traversal(ready: Mapping[TaskId, TraversalId]) -> ReadyTasks:
    found = ReadyTasks()
    for task_id, traversal in ready.items():
        found.add(traversal, task_id)
    return found


def expire(conn: Connection, task_ids: Iterable[TaskId], *, by: str | None, now: float) -> Cleared:
    """What the breakpoints' own limits say, for those of the tasks that are held and due: they go on, or the
    stack's action ends."""
    due = [task for task in _lock(conn, task_ids) if task.due_at is not None and task.due_at <= now]
    fail = [task for task in due if breakpoint_rules.fails_at_limit(task, task.hook or "")]
    stopped = {task.traversal for task in fail}
    ready = ReadyTasks()
    for task in {task.traversal: task for task in reversed(fail)}.values():
        ready.merge(_fail(conn, task, by=by, now=now).ready)
    go_on = [task.id for task in due if task.traversal not in stopped]
    if go_on:
        cleared = clear(conn, go_on, stepping=None, by=by, now=now)
        assert cleared is not None, "their rows are locked"
        ready.merge(cleared.ready)
    return Cleared(ready)


def _fail(conn: Connection, task: Task, *, by: str | None, now: float) -> Cleared:
    hook, t = task.hook or "", tables.task
    state = TaskState.DONE if breakpoint_rules.is_post(hook) else TaskState.CANCELLED
    rows = resources.by_ids(conn, [ResourceId(task.resource_id or 0)])
    name = next((row.name for row in rows.values()), "")
    conn.execute(sa.update(t).where(t.c.id == task.id).values(state=state, hook=None, due_at=None))
    resources.delete_many(conn, [row.id for row in rows.values() if row.id in _deleted([task])])
    reason = breakpoint_rules.abort_reason(hook, name)
    unblock(conn, [FinishedTask(task, failure=reason, aborts=True)], now=now)
    return Cleared(_by_traversal(_end(conn, _numbers([task]), by=by, now=now)))
