"""Committing what steps came to, several tasks in one transaction.

The order of locks is the same in every transaction: what parked tasks wait for, own tasks, resources,
traversals, successors (each in id order), stacks.  Who supersedes a traversal holds the stack first; where
that meets the end of the traversal the database reports a deadlock and the transaction is run again.
"""

import functools
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import events, resources
from ..batches import IDS, chunks
from ..events import Event
from ..ids import ResourceId, StackId, TaskId, TraversalId
from ..rows import ReadyTasks, Resource, Task
from ..schema import tables
from ..states import (
    FINAL,
    REDELIVER_AFTER,
    TRANSITIONS,
    UNSTARTED,
    Standing,
    Status,
    TaskKind,
    TaskState,
    stopped_reason,
)
from . import breakpoint_rules, breakpoints, deadlines, endings, losses, orphans, transitions
from .breakpoint_rules import BreakpointHit
from .cancel import waits_for_child
from .carry_over import RequeueRequest, requeue
from .claim import Claim, Claimant, claim
from .countdown import FinishedTask, unblock
from .orphans import OrphanedCreate

Json = typing.Any


@dataclass(frozen=True)
class Outcome:
    """What a step of a claimed task came to.

    :ivar state: the task's next state.
    :ivar changes: columns of the resource's row to set.
    :ivar remove: the resource's row goes (a deletion that ended well).
    :ivar due_at: next moment of attention, for states that are not final.
    :ivar waits_on: for PARKED; see `resources.steps.Park`.
    :ivar seen: for PARKED on a resource: the generation of its metadata that the step saw.
    :ivar reason: for FAILED: first cause, shown on the stack.
    :ivar hook: for HELD: at which breakpoint.
    :ivar aborts: for FAILED: it was a breakpoint that ends the stack's action.
    :ivar begun: that the action begins, where the step had to find that out.
    :ivar event: what happened.
    :ivar copy: columns to set of what a snapshot keeps of the resource, with the copy's id as ``row_id``.
    :ivar leftover: what the step may still make, for it did not stop; kept if the task ends by this.
    :ivar replacement: for READY and HELD: the task goes on with the creation of this new resource instead of
        `resource_id`, which it replaces.
    """

    task_id: TaskId
    attempt: int
    state: TaskState
    resource_id: ResourceId
    changes: Mapping[str, Json] = field(default_factory=dict)
    remove: bool = False
    due_at: float | None = None
    waits_on: str | None = None
    seen: int = 0
    retries_left: int | None = None
    reason: str | None = None
    hook: str | None = None
    aborts: bool = False
    begun: Event | None = None
    event: Event | None = None
    replacement: Resource | None = None
    copy: Mapping[str, Json] = field(default_factory=dict)
    leftover: OrphanedCreate | None = None

    def __post_init__(self) -> None:
        if self.state not in TRANSITIONS[TaskState.RUNNING]:
            raise ValueError(f"a running task never becomes {self.state}")
        if (self.state == TaskState.HELD) != (self.hook is not None):
            raise ValueError("a task is held at a breakpoint")


@dataclass(frozen=True)
class Exchange:
    """What a transaction of the work pipeline brought.

    :ivar refused: outcomes whose attempt was not the latest one; nothing of them was stored.
    :ivar claims: tasks now held.
    :ivar ready: tasks made ready and not claimed here: to be announced by hints.
    :ivar ended: stacks that reached a final status, with it.
    :ivar locked: ready tasks not claimed, because another transaction has locked their resource's row.
    """

    refused: Sequence[Outcome]
    claims: Sequence[Claim]
    ready: ReadyTasks
    ended: Sequence[tuple[StackId, Status]]
    locked: Sequence[TaskId] = ()


def exchange(
    conn: Connection,
    outcomes: Sequence[Outcome],
    wanted: Sequence[TaskId],
    *,
    who: Claimant,
    now: float,
    slots: int,
) -> Exchange:
    """Store the outcomes, then claim: up to `slots` tasks, one newly ready one for each outcome first.

    :param wanted: ids from hints; claimed after the newly ready ones while slots remain.
    """
    changed, standing = _lock_awaited(conn, outcomes)
    rows = _fence(conn, outcomes)
    accepted = [o for o in outcomes if _current(o, rows.get(o.task_id), who)]
    refused = [o for o in outcomes if not _current(o, rows.get(o.task_id), who)]
    accepted = [_of_superseded(o, rows[o.task_id]) for o in _cancel_stopped(conn, accepted, rows)]
    ready = _store(conn, accepted, rows, changed, now=now)
    unblocked, stops = breakpoints.partition(conn, unblock(conn, _ended(accepted, rows), now=now))
    stops += _reached(accepted, rows)
    told = [event for o in accepted for event in (o.begun, o.event) if event is not None]
    if stops:
        events.add_many(conn, told)
        told, aborted = [], breakpoints.hold(conn, stops, by=who.host, now=now)
        unblocked = [task for task in unblocked if task.traversal not in aborted]
    own = unblocked[: min(slots, len(accepted))]
    again = list(ready)[: min(slots, len(accepted)) - len(own)]
    ready.update(_unblock(conn, unblocked[len(own) :], now=now))
    others = [*again, *wanted[: max(0, slots - len(own) - len(again))]]
    claimed = claim(conn, others, who=who, now=now, waiting=own)
    kept = [task for task in claimed.locked if task.state == TaskState.WAITING]
    ready.update(_unblock(conn, kept, now=now))
    events.add_many(conn, [*told, *claimed.started])
    ready.update(_end_gone(conn, claimed.gone, now=now))
    over = [*claimed.gone, *(rows[o.task_id] for o in accepted if o.state in FINAL)]
    behind = [rows[o.task_id] for o in accepted if o.task_id in standing and o.state == TaskState.PARKED]
    deadlines.pause_parents(conn, [task.id for task in behind], now=now)
    ended, woken = _finish(conn, over, [stop.task for stop in stops], who=who, now=now)
    ready.update(woken)
    held = {held.task.id for held in claimed.claims}
    left = ReadyTasks()
    for task_id, traversal in ready.items():
        if task_id not in held:
            left.add(traversal, task_id)
    locked = [task.id for task in claimed.locked]
    return Exchange(refused, list(claimed.claims), left, ended, locked)


_LOCKED = sa.select(tables.task).where(tables.task.c.id.in_(IDS)).order_by(tables.task.c.id).with_for_update()


def _unblock(conn: Connection, tasks: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    transitions.unblock(conn, [task.id for task in tasks], now=now)
    return {task.id: task.traversal for task in tasks}


def _fence(conn: Connection, outcomes: Sequence[Outcome]) -> dict[TaskId, Task]:
    found: dict[TaskId, Task] = {}
    for part in chunks(outcome.task_id for outcome in outcomes):
        rows = conn.execute(_LOCKED, {"ids": part}).mappings()
        found.update((task.id, task) for task in (Task.of(dict(row)) for row in rows))
    return found


def _current(outcome: Outcome, task: Task | None, who: Claimant) -> bool:
    return (
        task is not None
        and task.state == TaskState.RUNNING
        and task.attempt == outcome.attempt
        and task.member == who.member
    )


def _lock_awaited(conn: Connection, outcomes: Sequence[Outcome]) -> tuple[set[TaskId], set[TaskId]]:
    """Of the tasks to be parked, those for which what they want to wait for has come meanwhile; and those
    that will wait for nested stacks which stand at breakpoints.

    The rows waited for stay locked: whoever changes one next will find the task parked.  They come before
    the tasks, as they do where a change of them wakes tasks.
    """
    r, s = tables.resource, tables.stack
    changed: set[TaskId] = set()
    standing: set[TaskId] = set()
    parked = [(o.waits_on, o) for o in outcomes if o.state == TaskState.PARKED and o.waits_on is not None]
    for waits_on, outcome in sorted(parked, key=lambda pair: pair[0]):
        kind, _, key = waits_on.partition(":")
        if kind == "resource":
            generation = conn.execute(
                sa.select(r.c.generation).where(r.c.id == int(key)).with_for_update()
            ).scalar()
            has_changed = generation is None or generation > outcome.seen
        else:
            query = sa.select(s.c.status, s.c.remaining).where(s.c.id == key).with_for_update()
            row = conn.execute(query).first()
            has_changed = row is None or row.status != Status.IN_PROGRESS
            if row is not None and row.remaining is not None:
                standing.add(outcome.task_id)
        if has_changed:
            changed.add(outcome.task_id)
    return changed, standing


def _cancel_stopped(
    conn: Connection, accepted: Sequence[Outcome], rows: Mapping[TaskId, Task]
) -> list[Outcome]:
    """What is to wait in a traversal that was stopped, or in which a task failed, is cancelled instead."""
    waiting = [rows[outcome.task_id] for outcome in accepted if outcome.state in UNSTARTED]
    goes_on = {outcome.task_id for outcome in accepted if waits_for_child(outcome.waits_on)}
    if not waiting:
        return list(accepted)
    wishes = RequeueRequest(
        begun={o.task_id: o.changes["progress"] is not None for o in accepted if "progress" in o.changes},
        done={o.task_id for o in accepted if o.state == TaskState.HELD},
        nested=goes_on,
    )
    ended = requeue(conn, waiting, wishes)
    return [_cancelled(o, rows[o.task_id]) if o.task_id in ended else o for o in accepted]


def _cancelled(outcome: Outcome, task: Task) -> Outcome:
    if breakpoint_rules.is_post(outcome.hook):
        return replace(outcome, state=TaskState.DONE, hook=None)
    if outcome.hook is not None:  # Nothing was begun, so the resource is as it was.
        return replace(outcome, state=TaskState.CANCELLED, hook=None, replacement=None)
    if task.kind == TaskKind.OBSERVE:
        return replace(outcome, state=TaskState.CANCELLED)
    changes = {**outcome.changes, "status": Status.FAILED, "reason": stopped_reason(task.kind.upper())}
    return replace(outcome, state=TaskState.CANCELLED, changes=changes)


def _of_superseded(outcome: Outcome, task: Task) -> Outcome:
    """What of an outcome counts where a newer traversal has planned with the resource meanwhile.

    That one has written down all that the resource may come to need.  And behind a task that goes on for it
    stands an update of the same resource: whether that is to be replaced is for that one to find, so that
    only one replacement comes of it.
    """
    if task.standing == Standing.OWN:
        return outcome
    changes = {name: value for name, value in outcome.changes.items() if name != "requires"}
    if outcome.replacement is not None:
        return replace(outcome, state=TaskState.CANCELLED, replacement=None, due_at=None)
    return replace(outcome, changes=changes)


def _store(
    conn: Connection,
    accepted: Sequence[Outcome],
    rows: Mapping[TaskId, Task],
    changed: set[TaskId],
    *,
    now: float,
) -> dict[TaskId, TraversalId]:
    """Write the resources and the tasks' new states, but for those to be held; parked tasks that are ready
    again."""
    ready: dict[TaskId, TraversalId] = {}
    for outcome in sorted(accepted, key=lambda o: o.task_id):
        task_id, traversal = outcome.task_id, rows[outcome.task_id].traversal
        if outcome.state == TaskState.PARKED and task_id in changed:
            transitions.release(conn, [task_id], due_at=now + REDELIVER_AFTER)
            ready[task_id] = traversal
        elif outcome.state == TaskState.PARKED:
            _park(conn, outcome)
        elif outcome.state == TaskState.READY:
            transitions.release(conn, [task_id], due_at=outcome.due_at)
            ready[task_id] = traversal
        if outcome.state in (TaskState.READY, TaskState.HELD):
            _replace(conn, outcome)
    losses.forget(conn, [o.task_id for o in accepted if rows[o.task_id].losses and o.state not in FINAL])
    for state, end in _ENDS.items():
        end(conn, [outcome.task_id for outcome in accepted if outcome.state == state])
    _store_resources(conn, accepted, now=now)
    for outcome in accepted:
        if outcome.leftover is not None and outcome.state in FINAL:
            orphans.record(conn, outcome.leftover, now=now)
    return ready


_ENDS: Mapping[TaskState, Callable[[Connection, Sequence[TaskId]], int]] = {
    TaskState.CANCELLED: transitions.cancel,
    TaskState.DONE: transitions.complete,
    TaskState.FAILED: transitions.fail,
}


def _park(conn: Connection, outcome: Outcome) -> None:
    transitions.park(
        conn,
        outcome.task_id,
        waits_on=outcome.waits_on,
        due_at=outcome.due_at,
        retries_left=outcome.retries_left,
    )


def _replace(conn: Connection, outcome: Outcome) -> None:
    """Let a new resource take the place of one that cannot be updated."""
    if outcome.replacement is None:
        return
    t, r, new = tables.task, tables.resource, outcome.replacement
    resources.insert_many(conn, [new])
    conn.execute(sa.update(r).where(r.c.id == outcome.resource_id).values(replaced_by=new.id))
    conn.execute(
        sa.update(t)
        .where(t.c.id == outcome.task_id)
        .values(resource_id=new.id, kind=TaskKind.CREATE, spare_id=None)
    )


def _store_resources(conn: Connection, accepted: Sequence[Outcome], *, now: float) -> None:
    by_columns: dict[tuple[str, ...], list[dict[str, Json]]] = {}
    changed = [{**o.changes, "row_id": o.resource_id} for o in accepted if o.changes and not _removes(o)]
    for row in sorted([*changed, *(o.copy for o in accepted if o.copy)], key=lambda row: row["row_id"]):
        columns = tuple(sorted({*row, "updated_at"} - {"row_id"}))
        by_columns.setdefault(columns, []).append({**row, "updated_at": now})
    for columns, rows in sorted(by_columns.items()):
        conn.execute(_set_columns(columns), rows)
    for part in chunks(outcome.resource_id for outcome in accepted if _removes(outcome)):
        conn.execute(_REMOVED, {"ids": part})


def _removes(outcome: Outcome) -> bool:
    """A resource that is held behind its deletion is still shown."""
    return outcome.remove and outcome.state in FINAL


_REMOVED = sa.delete(tables.resource).where(tables.resource.c.id.in_(IDS))


@functools.lru_cache(maxsize=256)
def _set_columns(columns: tuple[str, ...]) -> sa.Update:
    r = tables.resource
    values: dict[str, Json] = {name: sa.bindparam(name) for name in columns}
    return sa.update(r).where(r.c.id == sa.bindparam("row_id")).values(values)


def _end_gone(conn: Connection, gone: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    """The tasks are done, a snapshot keeps nothing of what is not there; those that became ready by it."""
    if not gone:
        return {}
    copies = [task.spare_id for task in gone if task.kind == TaskKind.SNAPSHOT]
    resources.delete_many(conn, [copy_id for copy_id in copies if copy_id is not None])
    transitions.complete(conn, [task.id for task in gone])
    return breakpoints.count_down(conn, [FinishedTask(task) for task in gone], now=now)


def _ended(accepted: Sequence[Outcome], rows: Mapping[TaskId, Task]) -> list[FinishedTask]:
    return [
        FinishedTask(
            rows[outcome.task_id],
            failure=(outcome.reason or "unknown") if outcome.state == TaskState.FAILED else None,
            aborts=outcome.aborts,
        )
        for outcome in accepted
        if outcome.state in FINAL
    ]


def _reached(accepted: Sequence[Outcome], rows: Mapping[TaskId, Task]) -> list[BreakpointHit]:
    """The tasks whose steps came to a breakpoint, as they are while they are held."""
    stops: list[BreakpointHit] = []
    for outcome in accepted:
        if outcome.hook is not None:
            task, new = rows[outcome.task_id], outcome.replacement
            if new is not None:
                task = replace(task, resource_id=new.id, kind=TaskKind.CREATE)
            stops.append(BreakpointHit(task, outcome.hook))
    return stops


def _finish(
    conn: Connection, over: Sequence[Task], held: Sequence[Task], *, who: Claimant, now: float
) -> tuple[list[tuple[StackId, Status]], dict[TaskId, TraversalId]]:
    """End the traversals of tasks that have ended, where nothing is left to do; ended stacks, and parents'
    tasks woken."""
    numbers = {task.finish_id for task in (*over, *held)} | deadlines.newer_traversals(conn, over)
    ended: list[tuple[StackId, Status]] = []
    woken: dict[TaskId, TraversalId] = {}
    for number in sorted(n for n in numbers if n is not None):
        done = endings.finish(conn, number, by=who.host, now=now)
        if done is not None:
            ended.append((done.stack_id, done.status))
            woken.update(done.woken)
    return ended, woken
