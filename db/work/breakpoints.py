"""Holds at breakpoints: a task that could run is held instead, which changes nothing but rows.

A task whose breakpoint is known from its plan becomes held when its last predecessor has ended; no conductor
has claimed it then.  Only the step of an update, or of a cleanup, finds whether there is anything to do.  So
such tasks are held by the outcome of their steps, and so are tasks that stop after their action.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import event_sinks, events, notifications, resources, statements, traversals
from ..ids import ResourceId, StackId, TaskId, TraversalId
from ..notifications import AtBreakpoint, EventKind
from ..rows import Event, Resource, Task
from ..schema import tables
from ..states import Status, TaskState
from . import breakpoint_rules, countdown, transitions
from .breakpoint_rules import NAMED, BreakpointHit
from .countdown import FinishedTask, count_down


def advance(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> dict[TaskId, TraversalId]:
    """Take tasks off the counts, and unblock or hold their successors; return the tasks made ready."""
    ready, hits = unblock(conn, count_down(conn, ended, now=now), by=None, now=now)
    numbers = {hit.task.finish_id for hit in hits}
    numbers |= countdown.newer_traversals(conn, [one.task for one in ended])
    for number in sorted(i for i in numbers if i is not None):
        countdown.pause_deadline(conn, number, now=now)
    return ready


def unblock(
    conn: Connection, counted_down: Sequence[Task], *, by: str | None, now: float
) -> tuple[dict[TaskId, TraversalId], list[BreakpointHit]]:
    """Unblock the tasks that may run, and hold the others; the caller pauses deadlines where that is due."""
    free, hits = partition(conn, counted_down)
    aborted = hold(conn, hits, by=by, now=now)
    ready = [task for task in free if task.traversal not in aborted]
    transitions.unblock(conn, [task.id for task in ready], now=now)
    return {task.id: task.traversal for task in ready}, hits


def partition(conn: Connection, unblocked: Iterable[Task]) -> tuple[list[Task], list[BreakpointHit]]:
    """Divide tasks into those that may run, and those that a breakpoint holds.

    No task is held whose resource a carried-over task has deleted before: nobody could see it, or clear it.
    """
    free, hits = breakpoint_rules.partition(unblocked)
    if not hits:
        return free, hits
    rows = resources.of_tasks(conn, (hit.task for hit in hits))
    deleted = [hit.task for hit in hits if hit.task.resource_id not in rows]
    return [*free, *deleted], [hit for hit in hits if hit.task.resource_id in rows]


def hold(conn: Connection, hits: Sequence[BreakpointHit], *, by: str | None, now: float) -> set[TraversalId]:
    """Hold tasks at their breakpoints, and notify that; return the traversals that a breakpoint has aborted.

    Nothing more starts in those.

    :param by: host of the conductor, for the events; None: the API.
    """
    if not hits:
        return set()
    rows = resources.of_tasks(conn, (hit.task for hit in hits))
    aborted: set[TraversalId] = set()
    for hit in sorted(hits, key=lambda hit: hit.task.id):
        if breakpoint_rules.aborts(hit.task, hit.hook) and hit.task.traversal not in aborted:
            aborted.add(hit.task.traversal)
            _abort(conn, hit, rows, now=now)
    remaining = [hit for hit in hits if hit.task.traversal not in aborted]
    _store(conn, remaining, now=now)
    counts = Counter(hit.task.finish_id for hit in remaining if hit.task.finish_id is not None)
    for number, count in sorted(counts.items()):
        traversals.count_held(conn, number, count)
    for stack_id, traversal in sorted({(hit.task.stack_id, hit.task.traversal) for hit in remaining}):
        show_on_stack(conn, stack_id, traversal)
    pairs = [(row, hit.hook) for hit in remaining if (row := rows.get(hit.task.resource_id)) is not None]
    notify(conn, EventKind.REACHED, pairs, by, now)
    return aborted


def _store(conn: Connection, hits: Sequence[BreakpointHit], *, now: float) -> None:
    groups: dict[tuple[str, float | None], list[TaskId]] = {}
    for hit in hits:
        groups.setdefault((hit.hook, breakpoint_rules.limit(hit.task, hit.hook)), []).append(hit.task.id)
    # In the order of their ids, as all rows are written.
    for (hook, seconds), ids in sorted(groups.items(), key=lambda group: min(group[1])):
        transitions.hold(conn, ids, hook=hook, due_at=None if seconds is None else now + seconds)


def _abort(conn: Connection, hit: BreakpointHit, rows: Mapping[ResourceId, Resource], *, now: float) -> None:
    """End the action as a failure does: running tasks end, and no other task starts."""
    transitions.cancel(conn, [hit.task.id])
    row = rows.get(hit.task.resource_id)
    failure = breakpoint_rules.aborted(hit.hook, "" if row is None else row.name)
    count_down(conn, [FinishedTask(hit.task, failure.message, failure, aborts=True)], now=now)


def notify(
    conn: Connection, fact: EventKind, held_tasks: Sequence[tuple[Resource, str]], by: str | None, now: float
) -> None:
    """Store the events of resources at their breakpoints, and notify them.

    :param fact: REACHED or CLEARED.
    :param by: host of the conductor; None: the API.
    """
    say = breakpoint_rules.reached_reason if fact == EventKind.REACHED else breakpoint_rules.cleared_reason
    sinks = event_sinks.of_stacks(conn, {row.stack_id for row, _ in held_tasks})
    entries = [(_event_of(row, say(hook), by, now, row.stack_id in sinks), hook) for row, hook in held_tasks]
    events.add_many(conn, [event for event, _ in entries])
    notifications.at_breakpoints(
        conn,
        fact,
        [
            (
                event.stack_id,
                event.reason,
                AtBreakpoint(event.uuid, event.resource_name, event.resource_type, event.physical_id, hook),
            )
            for event, hook in entries
        ],
    )


def _event_of(row: Resource, reason: str, by: str | None, now: float, has_sinks: bool) -> Event:
    """Return an event at a resource that does not change the resource's status."""
    return Event.at_resource(row, (row.action, row.status), reason, now, conductor=by, has_sinks=has_sinks)


@dataclass(frozen=True)
class HeldTask:
    """A task at a breakpoint, and its resource.

    :ivar until: the instant at which the breakpoint expires; None: it has no limit.
    :ivar path: names from the requested stack down to the resource: ``NESTED/…/NAME``.
    """

    id: TaskId
    resource_id: ResourceId
    resource_name: str
    resource_type: str
    physical_id: str | None
    hook: str
    until: float | None
    path: str = ""


def held_in_tree(conn: Connection, stack_id: StackId) -> tuple[list[HeldTask], dict[TraversalId, StackId]]:
    """Return the held tasks of a stack and of those nested in it, parents first; and their traversals.

    Only traversals in progress are returned, with their stacks.
    """
    s = tables.stack
    r = tables.resource
    query = (
        sa.select(s.c.id, s.c.parent_id, s.c.traversal, s.c.status, r.c.name.label("resource"))
        .outerjoin(r, r.c.id == s.c.parent_resource_id)
        .where(s.c.id.in_(statements.below(stack_id)), s.c.deleted_at.is_(None))
        .order_by(s.c.depth, r.c.name, s.c.id)
    )
    paths: dict[str, str] = {}
    held_tasks: list[HeldTask] = []
    traversals: dict[TraversalId, StackId] = {}
    for row in conn.execute(query).all():
        above = paths.get(row.parent_id, "")
        paths[row.id] = "" if row.id == stack_id else f"{above}{row.resource}/"
        if row.status == Status.IN_PROGRESS:
            traversals[TraversalId(row.traversal)] = StackId(row.id)
    for traversal, where in traversals.items():
        of_stack = held_of(conn, traversal)
        held_tasks += [replace(item, path=f"{paths[where]}{item.resource_name}") for item in of_stack]
    return held_tasks, traversals


def held_of(conn: Connection, traversal: TraversalId, *, limit: int | None = None) -> list[HeldTask]:
    """Return the held tasks of a traversal in id order, by the index on the traversal."""
    t = tables.task
    r = tables.resource
    rows = conn.execute(
        sa.select(
            t.c.id,
            r.c.id.label("resource_id"),
            r.c.name.label("resource_name"),
            r.c.type.label("resource_type"),
            r.c.physical_id,
            t.c.hook,
            t.c.due_at.label("until"),
        )
        .join(r, r.c.id == t.c.resource_id)
        .where(t.c.traversal == traversal, t.c.state == TaskState.HELD)
        .order_by(t.c.id)
        .limit(limit)
    ).mappings()
    return [HeldTask(**row, path=row["resource_name"]) for row in rows]


def show_on_stack(conn: Connection, stack_id: StackId, traversal: TraversalId) -> None:
    """Name the breakpoints in the stack's status reason; the caller holds the traversal's row."""
    t = tables.task
    s = tables.stack
    held_tasks = held_of(conn, traversal, limit=NAMED)
    if held_tasks:
        query = sa.select(sa.func.count()).where(t.c.traversal == traversal, t.c.state == TaskState.HELD)
        count = len(held_tasks) if len(held_tasks) < NAMED else int(conn.execute(query).scalar_one())
        named = [(item.hook, item.resource_name) for item in held_tasks]
        reason = s.c.action + sa.literal(breakpoint_rules.paused_reason("", named, count))
    else:
        reason = sa.literal("Stack ") + s.c.action + sa.literal(" started")
    conn.execute(
        sa.update(s)
        .where(s.c.id == stack_id, s.c.traversal == traversal, s.c.status == Status.IN_PROGRESS)
        .values(reason=reason)
    )
