"""Every change of a task's state: one function for each word of the state table.

No other module writes ``task.state``; ``tests/unit/db/test_boundaries.py`` holds that.  `ALL` lists the words
with their arrows, and doc/glossary.md explains them.

Callers have locked the rows and have seen their states.  Each statement compares the state again, so a row in
any other state stays as it is.  A mistake of a caller costs a lost update, never a second run of a task.
"""

import typing
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from .. import bulk
from ..bulk import OneOf, Writes
from ..ids import MemberId, TaskId, WaitsOn
from ..rows import Task
from ..schema import tables
from ..states import REDELIVER_AFTER, TRANSITIONS, TaskState

EXPIRED_GRACE = 30.0
"""Seconds for which a claimed task that has expired already is left to its conductor, which fails it."""
_T = tables.task.c


@dataclass(frozen=True)
class Transition:
    """The arrows of the state table that one word names."""

    word: str
    sources: frozenset[TaskState]
    target: TaskState

    def statement(self, **values: typing.Any) -> sa.Update:
        """Return the update of tasks by their ids, fenced on the states that the word starts from."""
        t = tables.task
        # Not IN: SQLAlchemy would write the list into the statement's text at each execution.
        fence = sa.or_(*(t.c.state == source for source in sorted(self.sources)))
        # SQLAlchemy and the driver convert each parameter at each execution, NULL too.
        columns = {name: sa.null() if value is None else value for name, value in values.items()}
        return sa.update(t).where(OneOf(t.c.id), fence).values(state=self.target, **columns)


def _transition(word: str, *sources: TaskState, to: TaskState) -> Transition:
    return Transition(word, frozenset(sources), to)


UNBLOCK = _transition("unblock", TaskState.WAITING, to=TaskState.READY)
CLAIM = _transition("claim", TaskState.READY, TaskState.WAITING, to=TaskState.RUNNING)
HOLD = _transition("hold", TaskState.WAITING, TaskState.RUNNING, to=TaskState.HELD)
CLEAR = _transition("clear", TaskState.HELD, to=TaskState.READY)
PARK = _transition("park", TaskState.RUNNING, to=TaskState.PARKED)
WAKE = _transition("wake", TaskState.PARKED, to=TaskState.READY)
RELEASE = _transition("release", TaskState.RUNNING, to=TaskState.READY)
COMPLETE = _transition("complete", TaskState.RUNNING, TaskState.HELD, to=TaskState.DONE)
FAIL = _transition("fail", TaskState.RUNNING, to=TaskState.FAILED)
CANCEL = _transition(
    "cancel",
    *(TaskState.WAITING, TaskState.READY, TaskState.RUNNING, TaskState.PARKED, TaskState.HELD),
    to=TaskState.CANCELLED,
)
ALL = (UNBLOCK, CLAIM, HOLD, CLEAR, PARK, WAKE, RELEASE, COMPLETE, FAIL, CANCEL)


def check(transitions: Sequence[Transition], table: Mapping[TaskState, Set[TaskState]]) -> None:
    """Compare the words with the state table: each arrow has exactly one word.

    :raises ValueError: a word names an arrow that the table lacks, an arrow has no word, or it has two.
    """
    words: dict[tuple[TaskState, TaskState], str] = {}
    for transition in transitions:
        for source in sorted(transition.sources):
            arrow = (source, transition.target)
            if transition.target not in table[source]:
                raise ValueError(f"{transition.word}: no task goes from {source} to {transition.target}")
            if arrow in words:
                raise ValueError(f"{words[arrow]} and {transition.word} both go from {source} to {arrow[1]}")
            words[arrow] = transition.word
    # A task that stays in its state (running: its step has made progress) needs no update of it.
    arrows = {(source, target) for source, targets in table.items() for target in targets if source != target}
    if missing := sorted(arrows - words.keys()):
        raise ValueError(f"no function takes a task from {missing[0][0]} to {missing[0][1]}")


check(ALL, TRANSITIONS)


def _run(conn: Connection, statement: sa.Update, task_ids: Iterable[TaskId], **values: typing.Any) -> int:
    return sum(result.rowcount for result in bulk.in_chunks(conn, statement, task_ids, **values))


_NOW: sa.BindParameter[float] = sa.bindparam("now", type_=sa.Float)
_UNBLOCK = UNBLOCK.statement(pending=0, ready_at=_NOW, due_at=sa.bindparam("due"))


def unblock(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> int:
    """Let tasks be claimed whose last predecessor has ended; return how many."""
    return _run(conn, _UNBLOCK, task_ids, now=now, due=now + REDELIVER_AFTER)


def _claim_statement() -> sa.Update:
    now = _NOW
    # Counted from the first claim: all attempts of an action share one timeout.
    expiry = sa.func.coalesce(_T.expires_at, now + _T.timeout)
    # A task that has expired already is claimed to be failed.  That takes a moment, in which the duty for
    # expired claims must not take it away again.
    due = sa.case((expiry <= now, now + EXPIRED_GRACE), else_=expiry)
    return CLAIM.statement(
        pending=0,
        member=sa.bindparam("claimant"),
        # The fence against late results: they carry the attempt under which they ran.
        attempt=_T.attempt + 1,
        claimed_at=now,
        waits_on=None,
        stop_by=None,
        expires_at=expiry,
        due_at=due,
    )


_CLAIM = _claim_statement()


def claim(writes: Writes, task_ids: Iterable[TaskId], *, member: MemberId, now: float) -> None:
    """Give tasks to a member, each as a new attempt.

    A waiting task becomes running at once if the caller has counted it down to no predecessor in this
    transaction: nobody else has seen it as ready.
    """
    bulk.put_off(writes, _CLAIM, task_ids, claimant=member, now=now)


_HOLD = HOLD.statement(
    pending=0,
    hook=sa.bindparam("reached"),
    due_at=sa.bindparam("due"),
    # How long the task is held is no part of its resource's timeout.
    expires_at=None,
    stop_by=None,
    member=None,
    waits_on=None,
)


def hold(conn: Connection, task_ids: Iterable[TaskId], *, hook: str, due_at: float | None) -> int:
    """Hold tasks at a breakpoint; return how many.

    :param due_at: the instant at which the breakpoint's own limit ends it; None: no limit.
    """
    return _run(conn, _HOLD, task_ids, reached=hook, due=due_at)


_CLEARED = {"hook": None, "stepped": sa.false(), "redelivered": 0}
_CLEAR = CLEAR.statement(**_CLEARED, hooks=sa.bindparam("ahead"), ready_at=_NOW, due_at=sa.bindparam("due"))


def clear(
    conn: Connection, task_ids: Iterable[TaskId], *, ahead: Mapping[str, typing.Any] | None, now: float
) -> int:
    """Let tasks run that were held before their action; return how many.

    :param ahead: breakpoints that they have still ahead, with their options.
    """
    return _run(conn, _CLEAR, task_ids, ahead=ahead, now=now, due=now + REDELIVER_AFTER)


@dataclass(frozen=True)
class Parking:
    """The wait of a task in the database.

    :ivar due_at: the instant at which it is woken at the latest; None: only the awaited event wakes it.
    :ivar retries_left: number of retries left to a task that waits for a retry with its whole timeout; None:
        the task polls.
    """

    task_id: TaskId
    waits_on: WaitsOn | None
    due_at: float | None
    retries_left: int | None = None

    def row(self) -> bulk.Row:
        """Return the columns to be stored."""
        row = {
            "id": self.task_id,
            "state": PARK.target,
            "waits_on": None if self.waits_on is None else str(self.waits_on),
            "due_at": self.due_at,
            "member": None,
            "stop_by": None,
            "redelivered": 0,
            # Who waits in the database has had no lost conductor since its step ended, see losses.py.
            "losses": None,
        }
        if self.retries_left is None:
            return row
        return {**row, "retries_left": self.retries_left, "expires_at": None}


def park(conn: Connection, parkings: Iterable[Parking]) -> int:
    """Let running tasks wait in the database; return how many."""
    polls: list[bulk.Row] = []
    retries: list[bulk.Row] = []
    for parking in parkings:
        (polls if parking.retries_left is None else retries).append(parking.row())
    [source] = PARK.sources
    return sum(bulk.update(conn, tables.task, rows, only={"state": source}) for rows in (polls, retries))


_CLAIMABLE = {"ready_at": _NOW, "member": None, "waits_on": None, "stop_by": None, "redelivered": 0}
_WAKE = WAKE.statement(**_CLAIMABLE, due_at=sa.bindparam("due"))
_RELEASE = RELEASE.statement(**_CLAIMABLE, due_at=sa.bindparam("due"))


def wake(conn: Connection, task_ids: Iterable[TaskId], *, now: float) -> int:
    """Let parked tasks be claimed; return how many."""
    return _run(conn, _WAKE, task_ids, now=now, due=now + REDELIVER_AFTER)


def release(conn: Connection, task_ids: Iterable[TaskId], *, now: float, due_at: float | None) -> int:
    """Give claims back, so that anybody may claim the tasks; return how many.

    :param due_at: the instant at which their hints are sent again.
    """
    return _run(conn, _RELEASE, task_ids, now=now, due=due_at)


_FINAL = {"member": None, "due_at": None, "waits_on": None, "hook": None}
_COMPLETE = COMPLETE.statement(**_FINAL)
_FAIL = FAIL.statement(**_FINAL)
_CANCEL = CANCEL.statement(**_FINAL)
_REVOKE = CANCEL.statement(due_at=sa.bindparam("due"), waits_on=None, hook=None)


def complete(conn: Connection, task_ids: Iterable[TaskId]) -> int:
    """End tasks well; return how many."""
    return _run(conn, _COMPLETE, task_ids)


_ATTEMPT: sa.BindParameter[int] = sa.bindparam("claimed_as", type_=sa.Integer)
_CLAIMANT: sa.BindParameter[str] = sa.bindparam("claimant", type_=sa.String)
# Not the column alone: at the last ANALYZE few tasks were claimed, so PostgreSQL would rather go through all
# that the member holds now than by the ids.
_HOLDER = sa.func.coalesce(_T.member, "")
_CLAIMED = sa.and_(OneOf(_T.id), _T.state == TaskState.RUNNING, _T.attempt == _ATTEMPT, _HOLDER == _CLAIMANT)
# The order of their ids is that of all locks of tasks.
_LOCKED = sa.select(_T.id).where(_CLAIMED).order_by(_T.id).with_for_update().subquery("locked")
_COMPLETED = (
    sa.update(tables.task)
    .values(state=COMPLETE.target, **dict.fromkeys(_FINAL, sa.null()))
    .returning(tables.task)
)
_COMPLETE_ATTEMPT = _COMPLETED.where(_CLAIMED)
_COMPLETE_ATTEMPTS = _COMPLETED.where(_T.id == _LOCKED.c.id)


def completing(task_ids: Sequence[TaskId]) -> sa.Update:
    """Return the statement that ends tasks well if an attempt of a member still holds them.

    It locks the rows, compares and ends, and returns them; see `Task.while_claimed`.  The database must know
    UPDATE ... RETURNING.  Its parameters are `ids`, `claimed_as`, the attempt, and `claimant`, the member.
    """
    return _COMPLETE_ATTEMPT if len(task_ids) == 1 else _COMPLETE_ATTEMPTS


def complete_attempts(
    conn: Connection, task_ids: Sequence[TaskId], *, attempt: int, member: MemberId
) -> list[Task]:
    """End tasks well, as far as this attempt of the member still holds them; return them as they were."""
    results = bulk.in_chunks(conn, completing(task_ids), task_ids, claimed_as=attempt, claimant=member)
    rows = [dict(row) for result in results for row in result.mappings().all()]
    return [Task.while_claimed(row, member) for row in rows]


def fail(conn: Connection, task_ids: Iterable[TaskId]) -> int:
    """End tasks as failed; return how many."""
    return _run(conn, _FAIL, task_ids)


def cancel(conn: Connection, task_ids: Iterable[TaskId], *, ask_at: float | None = None) -> int:
    """End tasks that are not to run on; return how many.

    :param ask_at: a conductor may still be running their steps: the rows keep its name, and it is asked to
        stop them again at this moment.  None: no step of them runs.
    """
    if ask_at is None:
        return _run(conn, _CANCEL, task_ids)
    return _run(conn, _REVOKE, task_ids, due=ask_at)
