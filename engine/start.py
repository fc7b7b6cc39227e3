"""Starting a traversal: all of its rows in one transaction."""

import logging
import typing
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from ..db import content, events, notifications, resources, sequences, snapshots, stacks
from ..db.engine import Database
from ..db.ids import ResourceId, TaskId, TraversalId
from ..db.rows import Stack, Task
from ..db.states import Status, TaskKind
from ..db.work import breakpoint_rules, breakpoints, cancel, deadlines, endings, tasks
from ..observe.logs import about
from ..planning.breakpoints import PlannedBreakpoints
from ..planning.plan import Plan, TraversalScope, plan_delete
from .announce import Hints, announce
from .cancel import stop_inside
from .compile import Compiled

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Started:
    """A traversal that was committed.

    :ivar ready: to be announced by hints: its tasks, and those of parents that an empty plan's end woke.
    :ivar superseded: older traversals of which tasks still run: to be told to the conductors.
    :ivar spared: of these tasks those that go on.
    """

    stack: Stack
    ready: list[TaskId]
    superseded: Sequence[TraversalId] = ()
    spared: Sequence[TaskId] = ()


def announce_started(hints: Hints, begun: Started) -> None:
    """Say what has begun, once it is committed: to the conductors, and in the log, where the line joins the
    request's id and the traversal's."""
    stack = begun.stack
    with about(project=stack.tenant, stack=stack.id):
        LOG.info("%s begins as trv-%s", stack.action, stack.traversal)
    for traversal in begun.superseded:
        hints.cancel(traversal, begun.spared)
    announce(hints, begun.stack.traversal, begun.ready)


def new_traversal() -> TraversalId:
    """A fresh id."""
    return TraversalId(str(uuid.uuid4()))


def reserve(database: Database, count: int) -> int:
    """The first of so many ids, in a transaction of their own: the sequence's row must not stay locked."""
    return database.write(lambda conn: sequences.reserve(conn, count))


def store_new_stack(conn: Connection, stack: Stack, compiled: Compiled, plan: Plan) -> Started:
    """Insert a stack with its plan.

    :raises NameTaken: see stacks.insert.
    """
    now = stack.created_at
    stack = replace(
        stack,
        template_id=content.put(conn, compiled.template, now),
        environment_id=content.put(conn, compiled.environment, now),
        files_id=content.put(conn, dict(compiled.files), now),
    )
    stacks.insert(conn, stack)
    _tell(conn, stack, now)
    return store_plan(conn, stack, plan, [], now=now)


def _tell(conn: Connection, stack: Stack, now: float) -> None:
    events.add_many(conn, [endings.stack_event(stack, Status.IN_PROGRESS, stack.reason, by=None, now=now)])
    notifications.about_stacks(conn, [stack.id])


def store_plan(
    conn: Connection, stack: Stack, plan: Plan, running: Collection[Task], *, now: float
) -> Started:
    """Store what a plan changes; one that has no task ends at once, and what has a breakpoint is held.

    :param running: tasks of older traversals that still run; their rows are locked.
    """
    running, spared = list(running), set(plan.spared)
    stopped = [task.id for task in running if task.id not in spared]
    cancel.ask_to_stop(conn, stopped, now=now, stop_by=plan.stop_by)
    resources.delete_many(conn, plan.settled)
    resources.insert_many(conn, plan.resources)
    resources.change_many(conn, plan.changes)
    waiting: dict[TaskId, list[TaskId]] = {}
    tasks.supersede(conn, running, plan.spared)
    for old, new in plan.after:
        waiting.setdefault(old.id, list(old.successors)).append(new)
    for old_id, successors in waiting.items():
        tasks.set_successors(conn, old_id, successors)
    kept = spared.difference(task.id for task in running)
    tasks.inherit(conn, kept, plan.finish.id)
    finish = replace(plan.finish, pending=plan.finish.pending + len(kept))
    tasks.insert_many(conn, [*plan.tasks, finish])
    _, stops = breakpoint_rules.partition(plan.unblocked)
    aborted = breakpoints.hold(conn, stops, by=None, now=now)
    over = not plan.tasks or stops
    ended = endings.finish(conn, plan.finish.id, by=None, now=now) if over else None
    woken = [] if ended is None else list(ended.woken)
    superseded = sorted({task.traversal for task in running})
    return Started(stack, [*([] if aborted else plan.ready), *woken], superseded, plan.spared)


def breakpoints_of(conn: Connection, stack: Stack) -> PlannedBreakpoints:
    """Those of a stack whose goal stays as it is."""
    environment = content.get(conn, stack.environment_id)
    return PlannedBreakpoints(environment["resource_registry"], abort=stack.abort_on_breakpoint)


def begin(
    conn: Connection,
    stack: Stack,
    scope: TraversalScope,
    *,
    action: str,
    deadline_at: float,
    **columns: typing.Any,
) -> Stack:
    """Make the scope's traversal the current one of a stack whose row is locked, and tell it.

    :param columns: of the stack to set beside.
    """
    if (stack.action, stack.status) == ("SNAPSHOT", Status.IN_PROGRESS):
        reason = f"Stack SNAPSHOT was superseded by {action}"
        snapshots.end(conn, [stack.traversal], reason=reason, failed=True)
    if stack.remaining is not None:  # With those of the stacks around it.
        deadlines.resume_deadline(conn, stack.id, stack.traversal, now=scope.now)
    columns = {"reason": f"Stack {action} started", **columns}
    columns |= {"action": action, "deadline_at": deadline_at}
    begun = stacks.begin(conn, stack.id, seen=stack.traversal, traversal=scope.traversal, **columns)
    assert begun, "the row is locked"
    told = action == "ROLLBACK" and (stack.action, stack.status) == (action, Status.IN_PROGRESS)
    stack = replace(stack, status=Status.IN_PROGRESS, traversal=scope.traversal, **columns)
    if not told:  # As endings.begin_rollbacks has done.
        _tell(conn, stack, scope.now)
    return stack


def running_of(conn: Connection, stack: Stack, *, on_copies: bool = False) -> dict[ResourceId, Task]:
    """The tasks that still run, of whatever traversal, by their resource; their rows are locked.

    :param on_copies: also the deletions of what snapshots keep, which go on beside all but the stack's own;
        and the tasks that still make a copy, by the copy too.
    """
    found = tasks.running_of_stack(conn, stack.id)
    if not on_copies:
        return by_resource(task for task in found if task.kind != TaskKind.DELETE_SNAPSHOT)
    making = {task.spare_id: task for task in found if task.kind == TaskKind.SNAPSHOT and task.spare_id}
    return {**making, **by_resource(found)}


def by_resource(found: Iterable[Task]) -> dict[ResourceId, Task]:
    """Tasks by the resource that they are for."""
    return {ResourceId(task.resource_id): task for task in found if task.resource_id is not None}


def start_delete(
    conn: Connection, scope: TraversalScope, *, timeout: float, stops: bool = True
) -> Started | None:
    """Supersede whatever the stack does with its deletion; None if it is deleted, or is being deleted.

    Work that runs on a resource is asked to stop by the caller; the resource's deletion waits for its end.

    :param timeout: seconds the deletion may take.
    :param stops: whether breakpoints hold.
    :raises TooFewIds: the stack has more resources than ids were reserved for.
    """
    stack = stacks.lock(conn, scope.stack_id)
    if stack.action == "DELETE" and stack.status != Status.FAILED:
        return None
    deleting = begin(conn, stack, scope, action="DELETE", deadline_at=scope.now + timeout)
    for traversal in (stack.traversal, *snapshots.take_over(conn, stack.id, scope.traversal)):
        tasks.cancel_unstarted(conn, stack.id, traversal, now=scope.now)
    # Deleted are they in their turn; until then nothing more is done for them.
    inside = stop_inside(conn, [stack.id], now=scope.now, grace=scope.defaults.cancel_grace)
    running = running_of(conn, stack, on_copies=True)
    found, copies = resources.of_stack(conn, stack.id), resources.copies(conn, stack.id)
    again = stack.action == "DELETE"
    found_there = replace(breakpoints_of(conn, stack), may_abort=not again, active=stops)
    scope = replace(scope, breakpoints=found_there)
    plan = plan_delete(found, running, scope, copies)
    begun = store_plan(conn, deleting, plan, running.values(), now=scope.now)
    return replace(begun, superseded=[*begun.superseded, *inside])
