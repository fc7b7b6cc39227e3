"""Each word of the state table on a real database: it takes its own arrows, and leaves all else alone."""

import typing
from collections.abc import Callable, Mapping, Sequence

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, A, B, claim_all, on, set_task, store_graph, task
from stoker.db import bulk
from stoker.db.bulk import Writes
from stoker.db.engine import Database
from stoker.db.ids import TaskId, WaitsOn
from stoker.db.states import REDELIVER_AFTER, TRANSITIONS, TaskState
from stoker.db.work import transitions
from stoker.db.work.transitions import Parking, Transition

pytestmark = pytest.mark.usefixtures("bystander")

Move = Callable[[sa.Connection, TaskId], int | None]


def claim(conn: sa.Connection, task_ids: Sequence[TaskId]) -> None:
    writes = Writes()
    transitions.claim(writes, task_ids, member=A.member, now=NOW)
    bulk.run(conn, writes)


MOVES: dict[str, Move] = {
    "unblock": lambda conn, task_id: transitions.unblock(conn, [task_id], now=NOW),
    "claim": lambda conn, task_id: claim(conn, [task_id]),
    "hold": lambda conn, task_id: transitions.hold(conn, [task_id], hook="pre-create", due_at=None),
    "clear": lambda conn, task_id: transitions.clear(conn, [task_id], ahead=None, now=NOW),
    "park": lambda conn, task_id: transitions.park(
        conn, [Parking(task_id, WaitsOn.parse("resource:1"), NOW)]
    ),
    "park to retry": lambda conn, task_id: transitions.park(conn, [Parking(task_id, None, NOW, 1)]),
    "wake": lambda conn, task_id: transitions.wake(conn, [task_id], now=NOW),
    "release": lambda conn, task_id: transitions.release(conn, [task_id], now=NOW, due_at=NOW),
    "complete": lambda conn, task_id: transitions.complete(conn, [task_id]),
    "fail": lambda conn, task_id: transitions.fail(conn, [task_id]),
    "cancel": lambda conn, task_id: transitions.cancel(conn, [task_id]),
    "cancel, and ask": lambda conn, task_id: transitions.cancel(conn, [task_id], ask_at=NOW),
}
BY_WORD = {transition.word: transition for transition in transitions.ALL}


def word_of(name: str) -> Transition:
    return BY_WORD[name.split(",")[0].split(" to ")[0]]


def test_all_words_are_tried_and_cover_the_table() -> None:
    assert {word_of(name).word for name in MOVES} == set(BY_WORD)
    arrows = {(source, word.target) for word in transitions.ALL for source in word.sources}
    allowed = {(source, target) for source, targets in TRANSITIONS.items() for target in targets}
    assert arrows == {(source, target) for source, target in allowed if source != target}


FULL: Mapping[str, typing.Any] = {
    **{"pending": 1, "attempt": 1, "member": "b/1", "ready_at": 1.0, "claimed_at": 2.0, "due_at": 3.0},
    **{"expires_at": NOW + 60, "stop_by": 5.0, "retries_left": 2, "redelivered": 3, "waits_on": "stack:x"},
    **{"hook": "h", "hooks": {"h": {}}, "stepped": True, "losses": {"hosts": ["b"]}},
}
"""Columns of a task that has a value in each of them."""
HINTED = {"ready_at": NOW, "due_at": NOW + REDELIVER_AFTER}
UNOWNED = {"member": None, "waits_on": None, "stop_by": None, "redelivered": 0}
RUNS = {"pending": 0, "attempt": 2, "member": A.member, "claimed_at": NOW, "due_at": NOW + 60}
PARKED = {**UNOWNED, "losses": None, "due_at": NOW}
OVER = {"member": None, "due_at": None, "waits_on": None, "hook": None}
CHANGES: Mapping[str, Mapping[str, typing.Any]] = {
    "unblock": {**HINTED, "pending": 0},
    "claim": {**RUNS, "waits_on": None, "stop_by": None},
    "hold": {**OVER, "pending": 0, "hook": "pre-create", "expires_at": None, "stop_by": None},
    "clear": {**HINTED, "hook": None, "hooks": None, "stepped": False, "redelivered": 0},
    "park": {**PARKED, "waits_on": "resource:1"},
    "park to retry": {**PARKED, "retries_left": 1, "expires_at": None},
    "wake": {**UNOWNED, **HINTED},
    "release": {**UNOWNED, "ready_at": NOW, "due_at": NOW},
    "complete": OVER,
    "fail": OVER,
    "cancel": OVER,
    "cancel, and ask": {"due_at": NOW, "waits_on": None, "hook": None},
}
"""The columns of such a task that each word changes, beside the state."""


@pytest.mark.parametrize("name", MOVES)
def test_a_word_takes_its_arrows_and_changes_nothing_else(database: Database, name: str) -> None:
    word = word_of(name)
    for state in TaskState:
        task_id = store_graph(database, {"one": []}).tasks["one"]
        set_task(database, task_id, state=state, **FULL)
        before = task(database, task_id).to_row()
        moved = database.write(lambda conn, task_id=task_id: MOVES[name](conn, task_id))  # type: ignore[misc]
        after = task(database, task_id).to_row()
        if state in word.sources:
            assert moved == (None if name == "claim" else 1), f"from {state}"
            assert after == {**before, **CHANGES[name], "state": word.target}, f"from {state}"
        else:
            assert (moved or 0, after) == (0, before), f"from {state}"


@on("postgresql", "sqlite")
@pytest.mark.parametrize("each", [False, True])
def test_an_attempt_completes_its_task_alone_and_gets_it_as_it_was(database: Database, each: bool) -> None:
    ids = store_graph(
        database, {name: [] for name in ("held", "older", "other", "cancelled", "not-asked")}
    ).ids
    claims = claim_all(database, ids)
    for task_id, columns in zip(
        ids[1:], ({"attempt": 2}, {"member": B.member}, {"state": TaskState.CANCELLED}), strict=False
    ):
        set_task(database, task_id, **columns)
    before = [task(database, task_id) for task_id in ids]
    batches = [[task_id] for task_id in ids[:-1]] if each else [ids[:-1]]
    completed = [
        one
        for batch in batches
        for one in database.write(
            lambda conn: transitions.complete_attempts(conn, batch, attempt=1, member=A.member)  # noqa: B023
        )
    ]
    assert [(one.id, one.state, one.member) for one in completed] == [(ids[0], TaskState.RUNNING, A.member)]
    assert completed[0].successors == claims[0].task.successors
    ended = task(database, ids[0])
    assert (ended.state, ended.member, ended.due_at) == (TaskState.DONE, None, None)
    assert [task(database, task_id) for task_id in ids[1:]] == before[1:]


def test_a_claim_is_a_new_attempt_and_keeps_the_time_that_was_left(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": [], "three": []}, timeout=60.0)
    first_id, second_id, third_id = graph.ids
    set_task(database, first_id, expires_at=NOW + 20, attempt=3)
    set_task(database, second_id, expires_at=NOW - 20)
    set_task(database, third_id, expires_at=NOW)
    database.write(lambda conn: claim(conn, graph.ids))
    first = task(database, first_id)
    second = task(database, second_id)
    assert (first.attempt, first.member, first.due_at) == (4, A.member, NOW + 20)
    # One that has expired is not taken away again before its conductor has failed it.
    assert second.due_at == task(database, third_id).due_at == NOW + transitions.EXPIRED_GRACE
