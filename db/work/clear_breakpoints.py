"""Clears of breakpoints: one transaction that lets held tasks run."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import resources, traversals
from ..bulk import chunks
from ..ids import ResourceId, TaskId, TraversalId, TraversalNumber
from ..notifications import EventKind
from ..rows import ReadyTasks, Task
from ..schema import tables
from ..states import POST_DELETE, TaskState
from . import breakpoint_rules, breakpoints, countdown, endings, transitions
from .countdown import FinishedTask, count_down


@dataclass(frozen=True)
class Cleared:
    """The result of clearing breakpoints.

    :ivar ready: tasks for which hints are to be sent: those cleared, their successors, and parents' tasks.
    """

    ready: ReadyTasks = field(default_factory=ReadyTasks)


def clear(
    conn: Connection, task_ids: Iterable[TaskId], *, stepping: bool | None, by: str | None, now: float
) -> Cleared | None:
    """Clear all of the tasks, or none; return None if one of them is not held.

    The order of locks is that of `commit.exchange`.

    :param stepping: whether each task of the traversal that still waits is held before it starts; None: the
        tasks keep their setting.
    :param by: host of the conductor, for the events; None: the API.
    """
    ids = set(task_ids)
    held_tasks = _lock(conn, ids)
    if {task.id for task in held_tasks} != ids:
        return None
    rows = resources.of_tasks(conn, held_tasks)
    _store(conn, held_tasks, now=now)
    deleted = [row.id for row in rows.values() if row.id in _deleted(held_tasks)]
    resources.delete_many(conn, deleted)
    for number, count in sorted(Counter(_numbers(held_tasks)).items()):
        traversals.count_held(conn, number, -count)
    for traversal in sorted({task.traversal for task in held_tasks}):
        set_stepping(conn, traversal, stepping)
    pairs = [(row, task.hook or "") for task in held_tasks if (row := rows.get(task.resource_id)) is not None]
    breakpoints.notify(conn, EventKind.CLEARED, pairs, by, now)
    for stack_id, traversal in sorted({(task.stack_id, task.traversal) for task in held_tasks}):
        countdown.resume_deadline(conn, stack_id, traversal, now=now)
    return _go_on(conn, held_tasks, by=by, now=now)


def _lock(conn: Connection, task_ids: Iterable[TaskId]) -> list[Task]:
    t = tables.task
    held_tasks: list[Task] = []
    for chunk in chunks(task_ids):
        query = sa.select(t).where(t.c.id.in_(chunk), t.c.state == TaskState.HELD).order_by(t.c.id)
        rows = conn.execute(query.with_for_update()).mappings()
        held_tasks += [Task.of(dict(row)) for row in rows]
    return held_tasks


def _store(conn: Connection, held_tasks: Sequence[Task], *, now: float) -> None:
    """Let tasks that were held before their action run, and end those that were held after it."""
    transitions.complete(conn, [task.id for task in held_tasks if breakpoint_rules.is_post(task.hook)])
    groups: dict[str, list[TaskId]] = {}
    for task in held_tasks:
        if not breakpoint_rules.is_post(task.hook):
            ahead = {hook: options for hook, options in (task.hooks or {}).items() if hook != task.hook}
            groups.setdefault(json.dumps(ahead), []).append(task.id)
    for ahead_text, ids in sorted(groups.items(), key=lambda group: min(group[1])):
        transitions.clear(conn, ids, ahead=json.loads(ahead_text) or None, now=now)


def _deleted(held_tasks: Sequence[Task]) -> set[ResourceId]:
    """Return the resources whose rows were kept only to show the breakpoint."""
    return {task.resource_id for task in held_tasks if task.hook == POST_DELETE}


def _numbers(held_tasks: Sequence[Task]) -> list[TraversalNumber]:
    return [task.finish_id for task in held_tasks if task.finish_id is not None]


def set_stepping(conn: Connection, traversal: TraversalId, stepping: bool | None) -> None:
    """Set whether each waiting task of a traversal is held before it starts; None changes nothing."""
    if stepping is None:
        return
    t = tables.task
    waiting = (t.c.traversal == traversal, t.c.state == TaskState.WAITING)
    # Locked in the order of ids, as all rows are.
    ids = conn.execute(sa.select(t.c.id).where(*waiting, t.c.stepped.is_not(stepping))).scalars()
    for chunk in chunks(ids):
        list(conn.execute(sa.select(t.c.id).where(t.c.id.in_(chunk)).order_by(t.c.id).with_for_update()))
        conn.execute(sa.update(t).where(t.c.id.in_(chunk)).values(stepped=stepping))


def _go_on(conn: Connection, held_tasks: Sequence[Task], *, by: str | None, now: float) -> Cleared:
    ready = {task.id: task.traversal for task in held_tasks if not breakpoint_rules.is_post(task.hook)}
    ended = [task for task in held_tasks if breakpoint_rules.is_post(task.hook)]
    free, _ = breakpoints.unblock(
        conn, count_down(conn, [FinishedTask(task) for task in ended], now=now), by=by, now=now
    )
    ready.update(free)
    for stack_id, traversal in sorted({(task.stack_id, task.traversal) for task in held_tasks}):
        breakpoints.show_on_stack(conn, stack_id, traversal)
    numbers = {*_numbers(held_tasks), *countdown.newer_traversals(conn, ended)}
    ready.update(_end(conn, numbers, by=by, now=now))
    return Cleared(_by_traversal(ready))


def _end(
    conn: Connection, numbers: Iterable[TraversalNumber], *, by: str | None, now: float
) -> dict[TaskId, TraversalId]:
    """End the traversals without open tasks; return the parents' tasks that were woken."""
    ended = endings.finish(conn, dict.fromkeys(numbers, 0), by=by, now=now)
    return {task_id: traversal for traversal, ids in ended.woken.items() for task_id in ids}


def _by_traversal(ready: Mapping[TaskId, TraversalId]) -> ReadyTasks:
    tasks_ready = ReadyTasks()
    for task_id, traversal in ready.items():
        tasks_ready.add(traversal, task_id)
    return tasks_ready


def expire(conn: Connection, task_ids: Iterable[TaskId], *, by: str | None, now: float) -> Cleared:
    """Expire breakpoints of held tasks that are due: clear them, or fail the stack's action, as they say."""
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
    hook = task.hook or ""
    rows = resources.of_tasks(conn, [task])
    name = next((row.name for row in rows.values()), "")
    end = transitions.complete if breakpoint_rules.is_post(hook) else transitions.cancel
    end(conn, [task.id])
    resources.delete_many(conn, [row.id for row in rows.values() if row.id in _deleted([task])])
    failure = breakpoint_rules.aborted(hook, name)
    count_down(conn, [FinishedTask(task, failure.message, failure, aborts=True)], now=now)
    return Cleared(_by_traversal(_end(conn, _numbers([task]), by=by, now=now)))
