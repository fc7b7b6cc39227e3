"""Group commit: the results of several tasks, and the next claims, in one transaction.

The order of locks is the same in every transaction: what parked tasks wait for, own tasks, resources,
traversals, successors (each in id order), stacks.  So two commits never wait for each other in a circle.
Only who supersedes a traversal locks the stack first.  Where that meets the end of the traversal, the
database reports a deadlock, and the transaction is retried.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from .. import events, resources
from ..ids import StackId, TaskId, TraversalId
from ..outcomes import Outcome
from ..rows import ReadyTasks, Task
from ..states import FINAL, REDELIVER_AFTER, Status, TaskKind, TaskState
from . import breakpoints, endings, losses, orphans, tasks, transitions
from .admission import Admission, admit, lock_awaited
from .claim import Claim, Claimant, claim
from .countdown import FinishedTask, count_down


@dataclass(frozen=True)
class Exchange:
    """The result of a transaction that stored outcomes and claimed tasks.

    :ivar refused: outcomes whose attempt was not the latest one; nothing of them was stored.
    :ivar claims: tasks that the member holds now.
    :ivar ready: tasks made ready and not claimed here, for which hints are to be sent.
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
    hinted: Sequence[TaskId],
    *,
    who: Claimant,
    now: float,
    slots: int,
) -> Exchange:
    """Store the outcomes, then claim up to `slots` tasks: first one newly ready task for each outcome.

    :param hinted: ids from hints; claimed after the newly ready ones while slots remain.
    """
    # What tasks will wait for comes first: who changes it locks it first, too, and then wakes the tasks.  A
    # change before our lock is seen here; a change after our commit finds the task parked.  None is lost.
    awaited = lock_awaited(conn, outcomes)
    # The fence: from here on the tasks' rows are locked, and no other attempt can take them.
    admitted = admit(conn, outcomes, who=who)
    ready = _store(conn, admitted, awaited.changed, now=now)
    # Counting down locks traversals, then successors.  It comes after the resources are written, because a
    # successor that is claimed below reads what its predecessors have just stored.
    free, hits = breakpoints.partition(conn, count_down(conn, admitted.ended(), now=now))
    hits += admitted.hits()
    recorded = [event for o in admitted.accepted for event in (o.begun, o.event) if event is not None]
    if hits:
        # Events are shown in the order of their ids: the end of an action comes before its breakpoint.
        events.add_many(conn, recorded)
        recorded, aborted = [], breakpoints.hold(conn, hits, by=who.host, now=now)
        # A breakpoint that aborts has cancelled these in the database already.
        free = [task for task in free if task.traversal not in aborted]
    # The continuation: a thread that has just ended a task takes a successor at once, without a hint.  Such a
    # task goes from waiting to running, so nobody else sees it as ready.  Hints announce the others.
    own, others = choose(free, list(ready), hinted, slots=slots, fresh=len(admitted.accepted))
    ready.update(_unblock(conn, free[len(own) :], now=now))
    claimed = claim(conn, others, who=who, now=now, waiting=own)
    # Another transaction holds the resource's row: the task must not be left waiting for nothing.
    kept = [task for task in claimed.locked if task.state == TaskState.WAITING]
    ready.update(_unblock(conn, kept, now=now))
    events.add_many(conn, [*recorded, *claimed.started])
    ready.update(_complete_gone(conn, claimed.gone, now=now))
    over = [*claimed.gone, *(one.task for one in admitted.ended())]
    # Last, because only now all tasks of this transaction are counted: a traversal without open tasks ends,
    # and one in which nothing but held tasks remains pauses its deadline.  Stacks are locked here.
    held, behind = [hit.task for hit in hits], admitted.parked(awaited.paused)
    ended, woken = endings.finish_all(conn, over, held=held, parked=behind, by=who.host, now=now)
    left = _without_claims({**ready, **woken}, claimed.claims)
    locked = [task.id for task in claimed.locked]
    return Exchange(admitted.refused, list(claimed.claims), left, ended, locked)


def _without_claims(ready: Mapping[TaskId, TraversalId], claims: Sequence[Claim]) -> ReadyTasks:
    claimed = {one.task.id for one in claims}
    left = ReadyTasks()
    for task_id, traversal in ready.items():
        if task_id not in claimed:
            left.add(traversal, task_id)
    return left


def choose(
    free: Sequence[Task], ready: Sequence[TaskId], hinted: Sequence[TaskId], *, slots: int, fresh: int
) -> tuple[Sequence[Task], list[TaskId]]:
    """Choose the tasks to claim; return those that still wait, and the ids of those that are ready.

    :param free: tasks whose last predecessor has just ended.
    :param ready: ids of tasks that became ready just now.
    :param hinted: ids from hints.
    :param slots: how many tasks may be claimed.
    :param fresh: of these, how many may come from this transaction: one for each outcome that was stored.
    """
    fresh = min(slots, fresh)
    own = free[:fresh]
    again = ready[: fresh - len(own)]
    return own, [*again, *hinted[: max(0, slots - len(own) - len(again))]]


def _unblock(conn: Connection, tasks: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    transitions.unblock(conn, [task.id for task in tasks], now=now)
    return {task.id: task.traversal for task in tasks}


def _store(
    conn: Connection, admitted: Admission, changed: frozenset[TaskId], *, now: float
) -> dict[TaskId, TraversalId]:
    """Store resources and the tasks' new states; return parked or continued tasks that are ready again.

    Tasks that are to be held keep their state here: whether a breakpoint holds them is decided later.
    """
    accepted, ready = admitted.accepted, dict[TaskId, TraversalId]()
    for outcome in sorted(accepted, key=lambda o: o.task_id):
        task_id = outcome.task_id
        if outcome.state == TaskState.PARKED and task_id not in changed:
            transitions.park(
                conn,
                task_id,
                waits_on=outcome.waits_on,
                due_at=outcome.due_at,
                retries_left=outcome.retries_left,
            )
        elif outcome.state in (TaskState.PARKED, TaskState.READY):
            # What it wants to wait for has happened: its step polls once more, at once.
            due_at = now + REDELIVER_AFTER if outcome.state == TaskState.PARKED else outcome.due_at
            transitions.release(conn, [task_id], due_at=due_at)
            ready[task_id] = admitted.rows[task_id].traversal
        if outcome.replacement is not None and outcome.state in (TaskState.READY, TaskState.HELD):
            resources.replace_by(conn, outcome.resource_id, outcome.replacement)
            tasks.continue_with_creation(conn, task_id, outcome.replacement.id)
    # A step has ended, so its task has not killed the conductor: earlier losses do not count any more.
    survived = [o.task_id for o in accepted if admitted.rows[o.task_id].losses and o.state not in FINAL]
    losses.forget(conn, survived)
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


def _store_resources(conn: Connection, accepted: Sequence[Outcome], *, now: float) -> None:
    changed = [{**o.changes, "row_id": o.resource_id} for o in accepted if o.changes and not _removes(o)]
    copies = [o.copy for o in accepted if o.copy]
    resources.store_changes(conn, [*changed, *copies], now=now)
    resources.delete_many(conn, [o.resource_id for o in accepted if _removes(o)])


def _removes(outcome: Outcome) -> bool:
    # A resource whose task is held after its deletion is still shown, with its breakpoint.
    return outcome.remove and outcome.state in FINAL


def _complete_gone(conn: Connection, gone: Sequence[Task], *, now: float) -> dict[TaskId, TraversalId]:
    """Complete tasks whose resources are gone, and return the tasks that became ready by that.

    A snapshot has no copy of a resource that is gone.
    """
    if not gone:
        return {}
    copies = [task.spare_id for task in gone if task.kind == TaskKind.SNAPSHOT]
    resources.delete_many(conn, [copy_id for copy_id in copies if copy_id is not None])
    transitions.complete(conn, [task.id for task in gone])
    return breakpoints.advance(conn, [FinishedTask(task) for task in gone], now=now)
