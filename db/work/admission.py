"""Admission of outcomes: which results of steps are stored, and as what.

A result counts only while its attempt holds the task.  And the world may have moved on while the step ran:
the traversal was superseded or stopped, or what the task wants to wait for has happened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from ..batches import IDS, chunks
from ..ids import AwaitedKind, TaskId
from ..outcomes import Outcome
from ..rows import Task
from ..schema import tables
from ..states import FINAL, UNSTARTED, Standing, Status, TaskKind, TaskState, stopped_reason
from . import breakpoint_rules
from .breakpoint_rules import BreakpointHit
from .carry_over import RequeueRequest, stopped_tasks
from .claim import Claimant
from .countdown import FinishedTask


@dataclass(frozen=True)
class Awaited:
    """The state of what tasks are about to wait for.

    :ivar changed: tasks for which it has happened already, so they must not be parked.
    :ivar paused: tasks that will wait for nested stacks whose deadlines are paused.
    """

    changed: frozenset[TaskId]
    paused: frozenset[TaskId]


@dataclass(frozen=True)
class Admission:
    """The outcomes of a transaction, divided.

    :ivar accepted: outcomes to store, as they count.
    :ivar refused: outcomes whose attempt does not hold its task any more; nothing of them is stored.
    :ivar rows: the tasks by id, whose rows are locked, as they were before.
    """

    accepted: Sequence[Outcome]
    refused: Sequence[Outcome]
    rows: Mapping[TaskId, Task]

    def ended(self) -> list[FinishedTask]:
        """Return the tasks that reach a final state."""
        return [
            FinishedTask(
                self.rows[outcome.task_id],
                failure=(outcome.reason or "unknown") if outcome.state == TaskState.FAILED else None,
                aborts=outcome.aborts,
            )
            for outcome in self.accepted
            if outcome.state in FINAL
        ]

    def hits(self) -> list[BreakpointHit]:
        """Return the tasks whose steps came to a breakpoint, as they are while they are held."""
        found: list[BreakpointHit] = []
        for outcome in self.accepted:
            if outcome.hook is not None:
                task, new = self.rows[outcome.task_id], outcome.replacement
                if new is not None:
                    task = replace(task, resource_id=new.id, kind=TaskKind.CREATE)
                found.append(BreakpointHit(task, outcome.hook))
        return found

    def parked(self, among: frozenset[TaskId]) -> list[TaskId]:
        """Return those of the tasks that are parked."""
        return [o.task_id for o in self.accepted if o.state == TaskState.PARKED and o.task_id in among]


def lock_awaited(conn: Connection, outcomes: Sequence[Outcome]) -> Awaited:
    """Lock the rows that tasks are about to wait for, and return whether the waits make sense.

    The rows stay locked, so whoever changes one next finds the task parked.  They come before the tasks, in
    the same order in which a change of such a row wakes tasks.
    """
    r, s = tables.resource, tables.stack
    changed: set[TaskId] = set()
    paused: set[TaskId] = set()
    parked = [(o.waits_on, o) for o in outcomes if o.state == TaskState.PARKED and o.waits_on is not None]
    for waits_on, outcome in sorted(parked, key=lambda pair: str(pair[0])):
        if waits_on.kind == AwaitedKind.RESOURCE:
            query = sa.select(r.c.generation).where(r.c.id == int(waits_on.key)).with_for_update()
            generation = conn.execute(query).scalar()
            has_changed = generation is None or generation > outcome.seen
        else:
            found = sa.select(s.c.status, s.c.remaining).where(s.c.id == waits_on.key).with_for_update()
            row = conn.execute(found).first()
            has_changed = row is None or row.status != Status.IN_PROGRESS
            if row is not None and row.remaining is not None:
                paused.add(outcome.task_id)
        if has_changed:
            changed.add(outcome.task_id)
    return Awaited(frozenset(changed), frozenset(paused))


def admit(conn: Connection, outcomes: Sequence[Outcome], *, who: Claimant) -> Admission:
    """Lock the tasks of outcomes, and decide which outcomes are stored, and as what."""
    rows = _lock(conn, outcomes)
    accepted = [o for o in outcomes if _current(o, rows.get(o.task_id), who)]
    refused = [o for o in outcomes if not _current(o, rows.get(o.task_id), who)]
    # Before what is superseded: a task that is cancelled here has no replacement to refuse.
    kept = _cancel_stopped(conn, accepted, rows)
    return Admission([_of_superseded(o, rows[o.task_id]) for o in kept], refused, rows)


_LOCKED = sa.select(tables.task).where(tables.task.c.id.in_(IDS)).order_by(tables.task.c.id).with_for_update()


def _lock(conn: Connection, outcomes: Sequence[Outcome]) -> dict[TaskId, Task]:
    found: dict[TaskId, Task] = {}
    for part in chunks(outcome.task_id for outcome in outcomes):
        rows = conn.execute(_LOCKED, {"ids": part}).mappings()
        found.update((task.id, task) for task in (Task.of(dict(row)) for row in rows))
    return found


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
    conn: Connection, accepted: Sequence[Outcome], rows: Mapping[TaskId, Task]
) -> list[Outcome]:
    """Cancel tasks that would wait in a traversal that was stopped, or in which a task failed."""
    waiting = [rows[outcome.task_id] for outcome in accepted if outcome.state in UNSTARTED]
    if not waiting:
        return list(accepted)
    request = RequeueRequest(
        begun={o.task_id: o.changes["progress"] is not None for o in accepted if "progress" in o.changes},
        done={o.task_id for o in accepted if o.state == TaskState.HELD},
        nested={o.task_id for o in accepted if o.waits_on is not None and o.waits_on.is_stack},
    )
    ended = stopped_tasks(conn, waiting, request)
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
    """Return the part of an outcome that counts where a newer traversal has planned with the resource.

    That traversal has stored all that the resource may need, so `requires` stays.  An update of the same
    resource waits behind a carried-over task, and decides whether to replace it: so only one does.
    """
    if task.standing == Standing.OWN:
        return outcome
    changes = {name: value for name, value in outcome.changes.items() if name != "requires"}
    if outcome.replacement is not None:
        return replace(outcome, state=TaskState.CANCELLED, replacement=None, due_at=None)
    return replace(outcome, changes=changes)
