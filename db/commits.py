"""Committing what steps came to, several tasks in one transaction.

The order of locks is the same in every transaction: own tasks, resources, successors (each in id order),
finish tasks, stacks.  Where a failure cancels other tasks the order cannot be kept; the database then
reports a deadlock and the transaction is run again.
"""

import typing
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from . import endings, events, tables
from .claims import Claim, Claimant, claim
from .events import Event
from .ids import ResourceId, StackId, TaskId, TraversalId
from .states import FINAL, Status, TaskState
from .tasks import REDELIVER_AFTER, Task, cancel_unstarted, chunks

Json = typing.Any


@dataclass(frozen=True)
class Outcome:
    """What a step of a claimed task came to.

    :ivar state: the task's next state.
    :ivar changes: columns of the resource's row to set.
    :ivar remove: the resource's row goes (a deletion that ended well).
    :ivar due_at: next moment of attention, for states that are not final.
    :ivar waits_on: for PARKED; see `resources.contract.Park`.
    :ivar seen: for PARKED on a resource: the generation of its metadata that the step saw.
    :ivar reason: for FAILED: first cause, shown on the stack.
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
    event: Event | None = None


@dataclass(frozen=True)
class Exchange:
    """What a transaction of the work pipeline brought.

    :ivar refused: outcomes whose attempt was not the latest one; nothing of them was stored.
    :ivar claims: tasks now held.
    :ivar ready: tasks made ready and not claimed here: to be announced by hints.
    :ivar ended: stacks that reached a final status, with it.
    """

    refused: Sequence[Outcome]
    claims: Sequence[Claim]
    ready: Mapping[TraversalId, Sequence[TaskId]]
    ended: Sequence[tuple[StackId, Status]]


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
    rows = _fence(conn, outcomes, who=who)
    accepted = [o for o in outcomes if _current(o, rows.get(o.task_id), who)]
    refused = [o for o in outcomes if not _current(o, rows.get(o.task_id), who)]
    _store(conn, accepted, now=now)
    ready = _count_down(conn, accepted, rows, now=now)
    ended, woken = _finish(conn, accepted, rows, who=who, now=now)
    ready.update(woken)
    own = list(ready)[: min(slots, len(accepted))]
    claims = claim(conn, {*own, *wanted[: max(0, slots - len(own))]}, who=who, now=now)
    held = {claimed.task.id for claimed in claims}
    left: dict[TraversalId, list[TaskId]] = {}
    for task_id, traversal in ready.items():
        if task_id not in held:
            left.setdefault(traversal, []).append(task_id)
    return Exchange(refused=refused, claims=claims, ready=left, ended=ended)


def _fence(conn: Connection, outcomes: Sequence[Outcome], *, who: Claimant) -> dict[TaskId, Task]:
    t = tables.task
    found: dict[TaskId, Task] = {}
    for part in chunks(outcome.task_id for outcome in outcomes):
        rows = conn.execute(
            sa.select(t).where(t.c.id.in_(part)).order_by(t.c.id).with_for_update()
        ).mappings()
        found.update((task.id, task) for task in (Task.of(dict(row)) for row in rows))
    return found


def _current(outcome: Outcome, task: Task | None, who: Claimant) -> bool:
    return (
        task is not None
        and task.state == TaskState.RUNNING
        and task.attempt == outcome.attempt
        and task.member == who.member
    )


def _store(conn: Connection, accepted: Sequence[Outcome], *, now: float) -> None:
    """Write the tasks' new states, the resources and the events."""
    t = tables.task
    finals: dict[TaskState, list[int]] = {}
    for outcome in accepted:
        if outcome.state in FINAL:
            finals.setdefault(outcome.state, []).append(outcome.task_id)
    for state, ids in sorted(finals.items()):
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_(sorted(ids)))
            .values(state=state, member=None, due_at=None, waits_on=None)
        )
    for outcome in accepted:
        if outcome.state not in FINAL:
            _store_unfinished(conn, outcome, now=now)
    _store_resources(conn, accepted, now=now)
    events.add_many(conn, [outcome.event for outcome in accepted if outcome.event is not None])


def _store_unfinished(conn: Connection, outcome: Outcome, *, now: float) -> None:
    t = tables.task
    values: dict[str, Json] = {"state": outcome.state, "waits_on": outcome.waits_on}
    if outcome.state == TaskState.PARKED and _already_changed(conn, outcome):
        values.update(state=TaskState.READY, due_at=now, waits_on=None)
    elif outcome.state != TaskState.RUNNING:
        values["due_at"] = outcome.due_at
    if outcome.state != TaskState.RUNNING:
        values["member"] = None
    if outcome.retries_left is not None:
        values["retries_left"] = outcome.retries_left
        values["expires_at"] = None
    conn.execute(sa.update(t).where(t.c.id == outcome.task_id).values(**values))


def _already_changed(conn: Connection, outcome: Outcome) -> bool:
    """Whether what the task wants to wait for has come while it was looking.

    The row is locked: whoever changes it next will find the task parked.
    """
    if outcome.waits_on is None:
        return False
    kind, _, key = outcome.waits_on.partition(":")
    if kind == "resource":
        r = tables.resource
        generation = conn.execute(
            sa.select(r.c.generation).where(r.c.id == int(key)).with_for_update()
        ).scalar()
        return generation is None or generation > outcome.seen
    s = tables.stack
    status = conn.execute(sa.select(s.c.status).where(s.c.id == key).with_for_update()).scalar()
    return status != Status.IN_PROGRESS


def _store_resources(conn: Connection, accepted: Sequence[Outcome], *, now: float) -> None:
    r = tables.resource
    by_columns: dict[tuple[str, ...], list[dict[str, Json]]] = {}
    for outcome in sorted(accepted, key=lambda o: o.resource_id):
        if outcome.changes and not outcome.remove:
            row = {**outcome.changes, "updated_at": now}
            by_columns.setdefault(tuple(sorted(row)), []).append({**row, "row_id": outcome.resource_id})
    for columns, rows in sorted(by_columns.items()):
        conn.execute(
            sa.update(r)
            .where(r.c.id == sa.bindparam("row_id"))
            .values({name: sa.bindparam(name) for name in columns}),
            rows,
        )
    for part in chunks(outcome.resource_id for outcome in accepted if outcome.remove):
        conn.execute(sa.delete(r).where(r.c.id.in_(part)))


def _count_down(
    conn: Connection, accepted: Sequence[Outcome], rows: Mapping[TaskId, Task], *, now: float
) -> dict[TaskId, TraversalId]:
    """Take the finished tasks off their successors' counts; the tasks that became ready.

    A failed task's own traversal starts nothing more (its unstarted tasks are cancelled first), yet tasks
    of a newer traversal may wait for it too.
    """
    ended = [o for o in accepted if o.state in FINAL]
    cancelled = _cancel_behind_failures(conn, ended, rows, now=now)
    counts = Counter(TaskId(s) for o in ended for s in rows[o.task_id].successors)
    t = tables.task
    by_count: dict[int, list[TaskId]] = {}
    for task_id, count in counts.items():
        by_count.setdefault(count, []).append(task_id)
    for count, ids in sorted(by_count.items()):
        for part in chunks(ids):
            conn.execute(
                sa.update(t)
                .where(t.c.id.in_(part), t.c.state == TaskState.WAITING)
                .values(pending=t.c.pending - count)
            )
    finishing: Counter[TaskId] = Counter(cancelled)
    finishing.update(f for o in ended if (f := rows[o.task_id].finish_id) is not None)
    for finish_id, count in sorted(finishing.items()):
        conn.execute(sa.update(t).where(t.c.id == finish_id).values(pending=t.c.pending - count))
    return make_ready(conn, counts, now=now)


def _cancel_behind_failures(
    conn: Connection, ended: Iterable[Outcome], rows: Mapping[TaskId, Task], *, now: float
) -> dict[TaskId, int]:
    """Stop the traversals in which a task failed; how many tasks were cancelled, by finish task."""
    t = tables.task
    counts: dict[TaskId, int] = {}
    for outcome in ended:
        task = rows[outcome.task_id]
        if outcome.state != TaskState.FAILED or task.finish_id is None:
            continue
        count = cancel_unstarted(conn, task.traversal, now=now)
        counts[task.finish_id] = counts.get(task.finish_id, 0) + count
        conn.execute(
            sa.update(t)
            .where(t.c.id == task.finish_id, t.c.reason.is_(None))
            .values(reason=outcome.reason or "unknown")
        )
    return counts


def make_ready(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> dict[TaskId, TraversalId]:
    """Turn those of the tasks whose predecessors have all ended from waiting to ready."""
    t = tables.task
    ready: dict[TaskId, TraversalId] = {}
    for part in chunks(task_ids):
        found = conn.execute(
            sa.select(t.c.id, t.c.traversal)
            .where(t.c.id.in_(part), t.c.state == TaskState.WAITING, t.c.pending <= 0)
            .order_by(t.c.id)
        ).all()
        if not found:
            continue
        conn.execute(
            sa.update(t)
            .where(t.c.id.in_([task_id for task_id, _ in found]), t.c.state == TaskState.WAITING)
            .values(state=TaskState.READY, due_at=now + REDELIVER_AFTER)
        )
        ready.update((TaskId(task_id), TraversalId(traversal)) for task_id, traversal in found)
    return ready


def _finish(
    conn: Connection,
    accepted: Sequence[Outcome],
    rows: Mapping[TaskId, Task],
    *,
    who: Claimant,
    now: float,
) -> tuple[list[tuple[StackId, Status]], dict[TaskId, TraversalId]]:
    """End the traversals in which nothing is left to do; ended stacks, and parents' tasks woken."""
    finish_ids = {rows[o.task_id].finish_id for o in accepted if o.state in FINAL}
    ended: list[tuple[StackId, Status]] = []
    woken: dict[TaskId, TraversalId] = {}
    for finish_id in sorted(f for f in finish_ids if f is not None):
        done = endings.finish(conn, finish_id, by=who.host, now=now)
        if done is not None:
            ended.append((done.stack_id, done.status))
            woken.update(done.woken)
    return ended, woken
