"""Group commit: the results of several tasks, and the next claims, in one transaction.

A result counts only while its attempt holds the task.  And the world may have moved on while the step ran:
the traversal was superseded or stopped, or the event that the task wants to wait for has happened.

The order of locks is the same in every transaction: rows that parked tasks wait for, own tasks, resources,
successors, traversals (each in id order), stacks, projects (see usage.py).  So two commits never wait for
each other in a circle.  Only who supersedes a traversal locks the stack first.  Where that meets the end of
the traversal, the database reports a deadlock, and the transaction is retried.
"""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ...shapes import Json
from .. import bulk, events, resources
from ..bulk import OneOf, Writes
from ..ids import AwaitedKind, ResourceId, StackId, TaskId, TraversalId, WaitsOn
from ..rows import Outcome, ReadyTasks, Task
from ..schema import tables
from ..states import (
    FINAL,
    REDELIVER_AFTER,
    UNSTARTED,
    Standing,
    Status,
    TaskKind,
    TaskState,
    cancelled_reason,
)
from . import breakpoint_rules, breakpoints, endings, losses, orphans, transitions
from .breakpoint_rules import BreakpointHit
from .carry_over import RequeueRequest, stopped_tasks
from .claim import Claim, Claimant, Claimed, claim
from .completion import Completion, complete_and_store, only_change
from .countdown import FinishedTask, count_successors, lock_successors, open_tasks
from .transitions import Parking


@dataclass(frozen=True)
class Awaited:
    """The state of the rows that tasks are about to wait for.

    :ivar changed: tasks whose event has happened already, so they must not be parked.
    :ivar paused: tasks that will wait for nested stacks whose deadlines are paused.
    """

    changed: frozenset[TaskId] = frozenset()
    paused: frozenset[TaskId] = frozenset()


@dataclass(frozen=True)
class Admission:
    """The outcomes of a transaction, divided.

    :ivar accepted: outcomes to store, in the form that counts.
    :ivar refused: outcomes whose attempt does not hold its task any more; nothing of them is stored.
    :ivar rows: the tasks by id, whose rows are locked, as they were before.
    :ivar completion: what has been stored already, where all outcomes end their tasks well.
    """

    accepted: Sequence[Outcome]
    refused: Sequence[Outcome]
    rows: Mapping[TaskId, Task]
    completion: Completion = Completion()

    def finished(self) -> list[FinishedTask]:
        """Return the tasks that reach a final state."""
        return [
            FinishedTask(
                self.rows[outcome.task_id],
                failure=(outcome.reason or "unknown") if outcome.state == TaskState.FAILED else None,
                cause=outcome.cause,
                aborts=outcome.aborts,
                is_done=outcome.state == TaskState.DONE,
            )
            for outcome in self.accepted
            if outcome.state in FINAL
        ]


def lock_awaited(conn: Connection, parked: Sequence[tuple[WaitsOn, Outcome]]) -> Awaited:
    """Lock the rows that tasks are about to wait for, and return whether the waits make sense.

    The rows stay locked, so whoever changes one next finds the task parked.  They come before the tasks, in
    the same order in which a change of such a row wakes tasks.
    """
    rows: dict[WaitsOn, Sequence[Json]] = {}
    for kind, query in _AWAITED.items():
        keys = sorted({waits_on.key for waits_on, _ in parked if waits_on.kind == kind})
        if keys:
            ids = [int(key) for key in keys] if kind == AwaitedKind.RESOURCE else keys
            for key, *columns in conn.execute(query, {"ids": ids}):
                rows[WaitsOn(kind, str(key))] = columns
    changed: set[TaskId] = set()
    paused: set[TaskId] = set()
    for waits_on, outcome in parked:
        state = rows.get(waits_on, ())
        if waits_on.kind == AwaitedKind.RESOURCE:
            has_changed = not state or state[0] > outcome.seen
        else:
            has_changed = not state or state[0] != Status.IN_PROGRESS
            if state and state[1] is not None:
                paused.add(outcome.task_id)
        if has_changed:
            changed.add(outcome.task_id)
    return Awaited(frozenset(changed), frozenset(paused))


_R = tables.resource.c
_S = tables.stack.c
_AWAITED: Mapping[AwaitedKind, sa.Select[typing.Any]] = {
    AwaitedKind.RESOURCE: sa.select(_R.id, _R.generation)
    .where(OneOf(_R.id))
    .order_by(_R.id)
    .with_for_update(),
    AwaitedKind.STACK: (
        sa.select(_S.id, _S.status, _S.remaining).where(OneOf(_S.id)).order_by(_S.id).with_for_update()
    ),
}


def admit(
    conn: Connection, outcomes: Sequence[Outcome], *, who: Claimant, now: float, is_paused: bool = False
) -> Admission:
    """Lock the tasks of outcomes, and decide which outcomes are stored, and with which state.

    :param is_paused: whether some of them will wait for nested stacks whose deadlines are paused.
    """
    if not outcomes:
        return Admission((), (), {})
    completion = _complete(conn, outcomes, who, now=now)
    if completion is not None:
        tasks = completion.tasks
    else:
        locked = bulk.in_chunks(conn, _LOCKED, [outcome.task_id for outcome in outcomes])
        tasks = [Task.of(dict(row)) for rows in locked for row in rows.mappings()]
    rows = {task.id: task for task in tasks}
    accepted = [o for o in outcomes if _current(o, rows.get(o.task_id), who)]
    refused = [o for o in outcomes if not _current(o, rows.get(o.task_id), who)]
    # Before the tasks of superseded traversals: a task that is cancelled here has no replacement to refuse.
    if any(outcome.state in UNSTARTED for outcome in accepted):
        # It locks traversals, which come after successors.
        lock_successors(conn, [rows[o.task_id] for o in accepted if o.state in FINAL])
        accepted = _cancel_stopped(conn, accepted, rows, is_paused=is_paused)
    results = [o if rows[o.task_id].standing == Standing.OWN else _of_superseded(o) for o in accepted]
    return Admission(results, refused, rows, completion or Completion())


def _complete(
    conn: Connection, outcomes: Sequence[Outcome], who: Claimant, *, now: float
) -> Completion | None:
    """End the tasks if all outcomes end theirs well; None: their rows have to be read first."""
    attempt = outcomes[0].attempt
    if not conn.dialect.update_returning:
        return None
    if any(outcome.state != TaskState.DONE or outcome.attempt != attempt for outcome in outcomes):
        return None
    if conn.dialect.name == "postgresql" and (change := only_change(conn, outcomes, now=now)):
        return complete_and_store(conn, outcomes, change, member=who.member)
    ids = [outcome.task_id for outcome in outcomes]
    return Completion(transitions.complete_attempts(conn, ids, attempt=attempt, member=who.member))


_LOCKED = sa.select(tables.task).where(OneOf(tables.task.c.id)).order_by(tables.task.c.id).with_for_update()


def _current(outcome: Outcome, task: Task | None, who: Claimant) -> bool:
    """Return whether the outcome's attempt still holds its task: the fence against late results.

    A released task keeps its attempt until the next claim, and a cancelled one keeps its conductor's name
    until that has answered.  So neither would do alone, and state, attempt and member are compared.
    """
    return (
        task is not None
        and task.state == TaskState.RUNNING
        and task.attempt == outcome.attempt
        and task.member == who.member
    )


def _cancel_stopped(
    conn: Connection, accepted: Sequence[Outcome], rows: Mapping[TaskId, Task], *, is_paused: bool
) -> list[Outcome]:
    """Cancel tasks that would wait in a traversal that was stopped, or in which a task failed."""
    only_parked = all(outcome.state in (*FINAL, TaskState.PARKED) for outcome in accepted) and not is_paused
    numbers = (rows[outcome.task_id].finish_id for outcome in accepted if outcome.state in FINAL)
    waiting = [rows[outcome.task_id] for outcome in accepted if outcome.state in UNSTARTED]
    request = RequeueRequest(
        begun={o.task_id: o.changes["progress"] is not None for o in accepted if "progress" in o.changes},
        done={o.task_id for o in accepted if o.state == TaskState.HELD},
        nested={o.task_id for o in accepted if o.waits_on is not None and o.waits_on.is_stack},
        counted=set(numbers) if only_parked else None,
    )
    ended = stopped_tasks(conn, waiting, request)
    return [_cancelled(o, rows[o.task_id]) if o.task_id in ended else o for o in accepted]


def _cancelled(outcome: Outcome, task: Task) -> Outcome:
    if breakpoint_rules.is_post(outcome.hook):
        return replace(outcome, state=TaskState.DONE, hook=None)
    if outcome.hook is not None:  # Nothing was begun, so the resource is as it was.
        return replace(outcome, state=TaskState.CANCELLED, hook=None, replacement=None)
    if task.kind in (TaskKind.OBSERVE, TaskKind.REFRESH):
        return replace(outcome, state=TaskState.CANCELLED)
    columns = {"status": Status.FAILED, "reason": cancelled_reason(task.kind.upper()), "cancelled": True}
    return replace(outcome, state=TaskState.CANCELLED, changes={**outcome.changes, **columns})


def _of_superseded(outcome: Outcome) -> Outcome:
    """Return the part of an outcome that counts where a newer traversal has planned with the resource.

    That traversal has stored all that the resource may need, so `requires` stays.  An update of the same
    resource waits for a carried-over task, and decides whether to replace it: so only one decides.
    """
    changes = {name: value for name, value in outcome.changes.items() if name != "requires"}
    if outcome.replacement is not None:
        return replace(outcome, state=TaskState.CANCELLED, replacement=None, due_at=None)
    return replace(outcome, changes=changes)


@dataclass(frozen=True)
class Exchange:
    """The result of a transaction that stored outcomes and claimed tasks.

    :ivar refused: outcomes whose attempt was not the latest one; nothing of them was stored.
    :ivar claims: tasks that the member holds now.
    :ivar ready: tasks made ready and not claimed here, for which hints are to be sent.
    :ivar ended: stacks that reached a final status, with that status.
    :ivar woken: tasks of the stacks around these, ready since then.
    :ivar locked: ready tasks not claimed, because another transaction has locked their resource's row.
    """

    refused: Sequence[Outcome]
    claims: Sequence[Claim]
    ready: ReadyTasks
    ended: Sequence[tuple[StackId, Status]]
    woken: ReadyTasks = field(default_factory=ReadyTasks)
    locked: Sequence[TaskId] = ()


def exchange(
    conn: Connection,
    outcomes: Sequence[Outcome],
    hinted: Sequence[TaskId],
    *,
    who: Claimant,
    now: float,
    slots: int,
    others: int = 0,
) -> Exchange:
    """Store the outcomes, then claim up to `slots` tasks: first one newly ready task for each outcome.

    :param hinted: ids from hints; claimed after the newly ready ones while slots remain.
    :param others: those of them that belong to other projects than the outcomes do.  Up to half of the slots
        are kept for them: else a project with many chains of tasks would let nobody else have a turn.
    """
    # The rows that tasks will wait for come first: who changes such a row locks it first, too, and then wakes
    # the tasks.  A change before our lock is seen here; a change after our commit finds the task parked.  No
    # change is lost.
    parked = [(o.waits_on, o) for o in outcomes if o.waits_on is not None]
    awaited = lock_awaited(conn, parked) if parked else Awaited()
    # The fence: from here on the tasks' rows are locked, and no other attempt can take them.
    admitted = admit(conn, outcomes, who=who, now=now, is_paused=bool(awaited.paused))
    ready = _store(conn, admitted, awaited.changed, now=now)
    # Counting down comes after the resources are written, because a successor that is claimed below reads the
    # values that its predecessors have just stored.
    finished = admitted.finished()
    locked_successors = admitted.completion.successors
    free = count_successors(conn, finished, now=now, locked=locked_successors) if finished else []
    counts = open_tasks(finished) if finished else {}
    hits = list[BreakpointHit]()
    if any(task.hooks or task.stepped for task in free):
        free, hits = breakpoints.partition(conn, free)
    hits += [_hit(o.hook, o, admitted) for o in admitted.accepted if o.hook is not None]
    recorded = [event for o in admitted.accepted for event in (o.begun, o.event) if event is not None]
    if hits:
        # Events are shown in the order of their ids: the end of an action comes before its breakpoint.
        events.add_many(conn, recorded)
        recorded = []
        aborted = breakpoints.hold(conn, hits, by=who.host, now=now)
        # A breakpoint that aborts has cancelled these in the database already.
        free = [task for task in free if task.traversal not in aborted]
    # The continuation: a thread that has just ended a task takes a successor at once, without a hint.  Such a
    # task goes from waiting to running, so nobody else sees it as ready.  Hints announce the others.
    fresh = continued(len(admitted.accepted), slots=slots, others=others)
    chosen, announced = choose(free, list(ready), hinted, slots=slots, fresh=fresh)
    if later := free[len(chosen) :]:
        ready.update(_unblock(conn, later, now=now))
    # What is written from here on concerns rows that are locked, and nothing reads it before the commit.
    writes = Writes()
    claimed = Claimed()
    if announced or chosen:
        claimed = claim(conn, announced, who=who, now=now, writes=writes, waiting=chosen)
    # Another transaction holds the resource's row: the task must not be left waiting for nothing.
    if locked_waiting := [task for task in claimed.locked if task.state == TaskState.WAITING]:
        ready.update(_unblock(conn, locked_waiting, now=now))
    if recorded or claimed.started:
        events.add_many(conn, [*recorded, *claimed.started], writes)
    if claimed.deleted:
        bulk.run(conn, writes)
        ready.update(_complete_deleted(conn, claimed.deleted, now=now))
    over = [*claimed.deleted, *(one.task for one in finished)]
    # Last, because each traversal is one row, for which other conductors wait until our commit.  A traversal
    # without open tasks ends, and one in which nothing but held tasks remains pauses its deadline.
    waiting = [o.task_id for o in admitted.accepted if o.state == TaskState.PARKED]
    stopped = endings.Stopped(
        over, held=[hit.task for hit in hits], parked=[i for i in waiting if i in awaited.paused]
    )
    ended = endings.finish_all(conn, stopped, counts, by=who.host, now=now, writes=writes)
    claimed_ids = {one.task.id for one in claimed.claims}
    to_hint = ReadyTasks()
    for task_id, traversal in ready.items():
        if task_id not in claimed_ids:
            to_hint.add(traversal, task_id)
    locked = [task.id for task in claimed.locked]
    return Exchange(
        admitted.refused, list(claimed.claims), to_hint, list(ended.stacks.items()), ended.woken, locked
    )


def _hit(hook: str, outcome: Outcome, admitted: Admission) -> BreakpointHit:
    """Return the task whose step came to a breakpoint, as it is while it is held."""
    task = admitted.rows[outcome.task_id]
    new = outcome.replacement
    if new is not None:
        task = replace(task, resource_id=new.id, kind=TaskKind.CREATE)
    return BreakpointHit(task, hook)


def continued(stored: int, *, slots: int, others: int) -> int:
    """Return how many claims may come from the transaction itself: one for each outcome that it stores.

    :param others: hinted tasks of other projects.  Up to half of the slots are kept for them.
    """
    return min(stored, slots - min(others, (slots + 1) // 2))


def choose(
    free: Sequence[Task], ready: Sequence[TaskId], hinted: Sequence[TaskId], *, slots: int, fresh: int
) -> tuple[Sequence[Task], list[TaskId]]:
    """Choose the tasks to claim; return those that still wait, and the ids of those that are ready.

    :param free: tasks whose last predecessor has just ended.
    :param ready: ids of tasks that became ready just now.
    :param hinted: ids from hints.
    :param slots: how many tasks may be claimed.
    :param fresh: how many of the claims may come from this transaction: one for each outcome that was stored.
    """
    fresh = min(slots, fresh)
    chosen = free[:fresh]
    again = ready[: fresh - len(chosen)]
    return chosen, [*again, *hinted[: max(0, slots - len(chosen) - len(again))]]


def _unblock(conn: Connection, tasks: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    transitions.unblock(conn, [task.id for task in tasks], now=now)
    return {task.id: task.traversal for task in tasks}


def _store(
    conn: Connection, admitted: Admission, changed: frozenset[TaskId], *, now: float
) -> dict[TaskId, TraversalId]:
    """Store resources and the tasks' new states; return parked or continued tasks that are ready again.

    Tasks that are to be held keep their state here: whether a breakpoint holds them is decided later.
    """
    accepted = admitted.accepted
    ready = dict[TaskId, TraversalId]()
    parkings: list[Parking] = []
    for outcome in sorted(accepted, key=lambda o: o.task_id):
        task_id = outcome.task_id
        if outcome.state == TaskState.PARKED and task_id not in changed:
            parkings.append(
                Parking(task_id, outcome.waits_on, outcome.due_at, retries_left=outcome.retries_left)
            )
        elif outcome.state in (TaskState.PARKED, TaskState.READY):
            # The event that it wants to wait for has happened: its step polls once more, at once.
            due_at = now + REDELIVER_AFTER if outcome.state == TaskState.PARKED else outcome.due_at
            transitions.release(conn, [task_id], now=now, due_at=due_at)
            ready[task_id] = admitted.rows[task_id].traversal
        if outcome.replacement is not None and outcome.state in (TaskState.READY, TaskState.HELD):
            resources.replace_by(conn, outcome.resource_id, outcome.replacement)
            _continue_with_creation(conn, task_id, outcome.replacement.id)
    if parkings:
        transitions.park(conn, parkings)
    # A step has ended, so its task has not killed the conductor: earlier losses do not count any more.
    survived = [o.task_id for o in accepted if admitted.rows[o.task_id].losses]
    if survived:
        losses.forget(conn, survived)
    for state, end in () if admitted.completion.tasks else _ENDS.items():
        if ids := [outcome.task_id for outcome in accepted if outcome.state == state]:
            end(conn, ids)
    stored = admitted.completion.stored
    _store_resources(conn, [o for o in accepted if o.task_id not in stored], now=now)
    for leftover in (o.leftover for o in accepted if o.leftover is not None and o.state in FINAL):
        orphans.record(conn, leftover, now=now)
    return ready


def _continue_with_creation(conn: Connection, task_id: TaskId, replacement_id: ResourceId) -> None:
    """Let a task, whose row the caller has locked, create the replacement of its resource next."""
    t = tables.task
    values = {"resource_id": replacement_id, "kind": TaskKind.CREATE, "spare_id": None}
    conn.execute(sa.update(t).where(t.c.id == task_id).values(**values))


_ENDS: Mapping[TaskState, Callable[[Connection, Sequence[TaskId]], int]] = {
    TaskState.CANCELLED: transitions.cancel,
    TaskState.DONE: transitions.complete,
    TaskState.FAILED: transitions.fail,
}


def _store_resources(conn: Connection, accepted: Sequence[Outcome], *, now: float) -> None:
    # A resource whose task is held after its deletion is still shown, with its breakpoint.
    removed = [o.resource_id for o in accepted if o.remove and o.state in FINAL]
    existing = [o for o in accepted if not (o.remove and o.state in FINAL)]
    changed = [{**o.changes, "id": o.resource_id} for o in existing if o.changes]
    copies = [o.copy for o in accepted if o.copy]
    if changed or copies:
        resources.store_changes(conn, [*changed, *copies], now=now)
    if removed:
        resources.delete_many(conn, removed)


def _complete_deleted(conn: Connection, deleted: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    """Complete tasks whose resources are gone, and return the tasks that became ready by that.

    A snapshot has no copy of a resource that is gone.
    """
    copies = [task.spare_id for task in deleted if task.kind == TaskKind.SNAPSHOT]
    resources.delete_many(conn, [copy_id for copy_id in copies if copy_id is not None])
    transitions.complete(conn, [task.id for task in deleted])
    return breakpoints.advance(conn, [FinishedTask(task) for task in deleted], now=now)
