"""Reaching breakpoints: a task that could go on is held instead, and nothing but rows changes.

A task whose breakpoint is known when it is planned becomes held when its last predecessor has ended; it was
never claimed.  Whether an update, or the cleanup after it, has anything to do only its step finds, so these
are held by what the step came to; and so are those that stop behind their action.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import events, notifications, resources, traversals, trees
from ..ids import ResourceId, StackId, TaskId, TraversalId
from ..notifications import AtBreakpoint, EventKind
from ..rows import Resource, Task
from ..schema import tables
from ..states import Status, TaskState
from . import breakpoint_rules, deadlines
from .breakpoint_rules import NAMED, BreakpointHit
from .countdown import FinishedTask, mark_ready, unblock


def count_down(conn: Connection, ended: Sequence[FinishedTask], *, now: float) -> dict[TaskId, TraversalId]:
    """Take the tasks off the counts of their traversals and successors; the tasks that became ready."""
    ready, stops = go_on(conn, unblock(conn, ended, now=now), by=None, now=now)
    standing = {stop.task.finish_id for stop in stops}
    standing |= deadlines.newer_traversals(conn, [final.task for final in ended])
    for number in sorted(i for i in standing if i is not None):
        deadlines.pause_deadline(conn, number, now=now)
    return ready


def go_on(
    conn: Connection, unblocked: Sequence[Task], *, by: str | None, now: float
) -> tuple[dict[TaskId, TraversalId], list[BreakpointHit]]:
    """Make ready what may begin, and hold the others; whether the clock stands now is the caller's to ask."""
    free, stops = partition(conn, unblocked)
    aborted = hold(conn, stops, by=by, now=now)
    return mark_ready(conn, [task for task in free if task.traversal not in aborted], now=now), stops


def partition(conn: Connection, unblocked: Iterable[Task]) -> tuple[list[Task], list[BreakpointHit]]:
    """Those that may begin, and those that are to be held.

    None is held whose resource an adopted task of an older traversal has deleted before it: nobody could see
    it, or let it go on.
    """
    free, stops = breakpoint_rules.partition(unblocked)
    if not stops:
        return free, stops
    rows = resources.by_ids(conn, {ResourceId(stop.task.resource_id or 0) for stop in stops})
    gone = [stop.task for stop in stops if stop.task.resource_id not in rows]
    return [*free, *gone], [stop for stop in stops if stop.task.resource_id in rows]


def hold(conn: Connection, stops: Sequence[BreakpointHit], *, by: str | None, now: float) -> set[TraversalId]:
    """Hold the tasks at their breakpoints, and tell it; the traversals that this has ended instead, of which
    nothing more begins.

    :param by: host of the conductor, for the events; None: the API.
    """
    if not stops:
        return set()
    rows = resources.by_ids(conn, {ResourceId(stop.task.resource_id or 0) for stop in stops})
    aborted: set[TraversalId] = set()
    for stop in sorted(stops, key=lambda stop: stop.task.id):
        if breakpoint_rules.aborts(stop.task, stop.hook) and stop.task.traversal not in aborted:
            aborted.add(stop.task.traversal)
            _abort(conn, stop, rows, now=now)
    kept = [stop for stop in stops if stop.task.traversal not in aborted]
    _store(conn, kept, now=now)
    counts = Counter(stop.task.finish_id for stop in kept if stop.task.finish_id is not None)
    for number, count in sorted(counts.items()):
        traversals.count_held(conn, number, count)
    for stack_id, traversal in sorted({(stop.task.stack_id, stop.task.traversal) for stop in kept}):
        show_on_stack(conn, stack_id, traversal)
    told = [(stop, ResourceId(stop.task.resource_id or 0)) for stop in kept if stop.task.resource_id in rows]
    notify(conn, EventKind.REACHED, [(rows[row_id], stop.hook) for stop, row_id in told], by, now)
    return aborted


def _store(conn: Connection, stops: Sequence[BreakpointHit], *, now: float) -> None:
    t = tables.task
    groups: dict[tuple[str, float | None], list[int]] = {}
    for stop in stops:
        groups.setdefault((stop.hook, breakpoint_rules.limit(stop.task, stop.hook)), []).append(stop.task.id)
    for (hook, seconds), ids in sorted(groups.items(), key=lambda group: min(group[1])):
        values = {
            "state": TaskState.HELD,
            "hook": hook,
            "due_at": None if seconds is None else now + seconds,
            # How long it is held is no part of its resource's timeout.
            "expires_at": None,
            "member": None,
            "waits_on": None,
        }
        conn.execute(sa.update(t).where(t.c.id.in_(sorted(ids))).values(**values))


def _abort(conn: Connection, stop: BreakpointHit, rows: dict[ResourceId, Resource], *, now: float) -> None:
    """End the action as a failure does: nothing more begins, and what runs ends."""
    t = tables.task
    conn.execute(sa.update(t).where(t.c.id == stop.task.id).values(state=TaskState.CANCELLED, due_at=None))
    found = rows.get(ResourceId(stop.task.resource_id or 0))
    reason = breakpoint_rules.abort_reason(stop.hook, "" if found is None else found.name)
    unblock(conn, [FinishedTask(stop.task, failure=reason, aborts=True)], now=now)


def notify(
    conn: Connection, fact: EventKind, found: Sequence[tuple[Resource, str]], by: str | None, now: float
) -> None:
    """Store the events of resources at their breakpoints, and tell those who listen.

    :param fact: REACHED or CLEARED.
    :param by: host of the conductor; None: the API.
    """
    say = breakpoint_rules.reached_reason if fact == EventKind.REACHED else breakpoint_rules.cleared_reason
    told = [(_event_of(row, say(hook), by, now), hook) for row, hook in found]
    events.add_many(conn, [event for event, _ in told])
    notifications.at_breakpoints(
        conn,
        fact,
        [
            (
                event.stack_id,
                event.reason,
                AtBreakpoint(event.uuid, event.resource_name, event.resource_type, event.physical_id, hook),
            )
            for event, hook in told
        ],
    )


def _event_of(row: Resource, reason: str, by: str | None, now: float) -> events.Event:
    """What happened at a resource whose state it does not change."""
    return events.new(
        stack_id=row.stack_id,
        resource_name=row.name,
        resource_type=row.type,
        physical_id=row.physical_id,
        action=row.action,
        status=row.status,
        reason=reason,
        conductor=by,
        at=now,
    )


@dataclass(frozen=True)
class HeldTask:
    """A task at a breakpoint, and its resource.

    :ivar until: when the breakpoint's own limit ends it; None: it has none.
    :ivar path: names from the stack that was asked for down to the resource's: ``NESTED/…/NAME``.
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
    """What is held in a stack and in those nested in it, parents first, with the paths; and their traversals
    that are in progress."""
    s, r = tables.stack, tables.resource
    query = (
        sa.select(s.c.id, s.c.parent_id, s.c.traversal, s.c.status, r.c.name.label("resource"))
        .outerjoin(r, r.c.id == s.c.parent_resource_id)
        .where(s.c.id.in_(trees.below(stack_id)), s.c.deleted_at.is_(None))
        .order_by(s.c.depth, r.c.name, s.c.id)
    )
    paths: dict[str, str] = {}
    held: list[HeldTask] = []
    traversals: dict[TraversalId, StackId] = {}
    for row in conn.execute(query).all():
        above = paths.get(row.parent_id, "")
        paths[row.id] = "" if row.id == stack_id else f"{above}{row.resource}/"
        if row.status == Status.IN_PROGRESS:
            traversals[TraversalId(row.traversal)] = StackId(row.id)
    for traversal, where in traversals.items():
        found = held_of(conn, traversal)
        held += [replace(item, path=f"{paths[where]}{item.resource_name}") for item in found]
    return held, traversals


def held_of(conn: Connection, traversal: TraversalId, *, limit: int | None = None) -> list[HeldTask]:
    """The tasks of a traversal that are held, in id order, by the index on the traversal."""
    t, r = tables.task, tables.resource
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
    t, s = tables.task, tables.stack
    found = held_of(conn, traversal, limit=NAMED)
    if found:
        held = sa.select(sa.func.count()).where(t.c.traversal == traversal, t.c.state == TaskState.HELD)
        count = len(found) if len(found) < NAMED else int(conn.execute(held).scalar_one())
        named = [(item.hook, item.resource_name) for item in found]
        reason = s.c.action + sa.literal(breakpoint_rules.paused_reason("", named, count))
    else:
        reason = sa.literal("Stack ") + s.c.action + sa.literal(" started")
    conn.execute(
        sa.update(s)
        .where(s.c.id == stack_id, s.c.traversal == traversal, s.c.status == Status.IN_PROGRESS)
        .values(reason=reason)
    )
