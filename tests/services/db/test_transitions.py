"""Each word of the state table on a real database: it takes its own arrows, and leaves all else alone."""

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, A, set_task, store_graph, task
from stoker.db.engine import Database
from stoker.db.ids import TaskId, WaitsOn
from stoker.db.states import REDELIVER_AFTER, TRANSITIONS, TaskState
from stoker.db.work import transitions
from stoker.db.work.transitions import Transition

Move = Callable[[sa.Connection, TaskId], int]

MOVES: dict[str, Move] = {
    "unblock": lambda conn, one: transitions.unblock(conn, [one], now=NOW),
    "claim": lambda conn, one: transitions.claim(conn, [one], member=A.member, now=NOW),
    "hold": lambda conn, one: transitions.hold(conn, [one], hook="pre-create", due_at=None),
    "clear": lambda conn, one: transitions.clear(conn, [one], ahead=None, now=NOW),
    "park": lambda conn, one: transitions.park(conn, one, waits_on=WaitsOn.parse("resource:1"), due_at=NOW),
    "park to retry": lambda conn, one: transitions.park(conn, one, waits_on=None, due_at=NOW, retries_left=1),
    "wake": lambda conn, one: transitions.wake(conn, [one], now=NOW),
    "release": lambda conn, one: transitions.release(conn, [one], due_at=NOW),
    "complete": lambda conn, one: transitions.complete(conn, [one]),
    "fail": lambda conn, one: transitions.fail(conn, [one]),
    "cancel": lambda conn, one: transitions.cancel(conn, [one]),
    "cancel, and ask": lambda conn, one: transitions.cancel(conn, [one], ask_at=NOW),
}
BY_WORD = {transition.word: transition for transition in transitions.ALL}


def word_of(name: str) -> Transition:
    return BY_WORD[name.split(",")[0].split(" to ")[0]]


def test_all_words_are_tried_and_cover_the_table() -> None:
    assert {word_of(name).word for name in MOVES} == set(BY_WORD)
    made = {(source, word.target) for word in transitions.ALL for source in word.sources}
    allowed = {(source, target) for source, targets in TRANSITIONS.items() for target in targets}
    assert made == {(source, target) for source, target in allowed if source != target}


@pytest.mark.parametrize("name", MOVES)
def test_a_word_takes_its_arrows_and_changes_nothing_else(database: Database, name: str) -> None:
    word = word_of(name)
    for state in TaskState:
        one = store_graph(database, {"one": []}).tasks["one"]
        set_task(
            database, one, state=state, attempt=1, member="b/1", due_at=1.0, waits_on="stack:x", hook="h"
        )
        before = task(database, one)
        moved = database.write(lambda conn, one=one: MOVES[name](conn, one))  # type: ignore[misc]
        after = task(database, one)
        if state in word.sources:
            assert (moved, after.state) == (1, word.target), f"from {state}"
        else:
            assert (moved, after) == (0, before), f"from {state}"


def test_a_claim_is_a_new_attempt_and_keeps_the_time_that_was_left(database: Database) -> None:
    graph = store_graph(database, {"one": [], "two": []}, timeout=60.0)
    one, two = graph.tasks["one"], graph.tasks["two"]
    set_task(database, one, expires_at=NOW + 20, attempt=3)
    set_task(database, two, expires_at=NOW - 20)
    database.write(lambda conn: transitions.claim(conn, graph.ids, member=A.member, now=NOW))
    first, second = task(database, one), task(database, two)
    assert (first.attempt, first.member, first.due_at) == (4, A.member, NOW + 20)
    # One that has expired is not taken away again before its conductor has failed it.
    assert second.due_at == NOW + transitions.EXPIRED_GRACE


def test_what_may_be_claimed_again_belongs_to_nobody(database: Database) -> None:
    for state, move in ((TaskState.PARKED, "wake"), (TaskState.RUNNING, "release")):
        one = store_graph(database, {"one": []}).tasks["one"]
        set_task(database, one, state=state, member="b/1", waits_on="stack:x", stop_by=NOW, redelivered=3)
        database.write(lambda conn, move=move, one=one: MOVES[move](conn, one))  # type: ignore[misc]
        found = task(database, one)
        assert (found.member, found.waits_on, found.stop_by, found.redelivered) == (None, None, None, 0)
        assert found.due_at == (NOW if move == "release" else NOW + REDELIVER_AFTER)


def test_a_conductor_that_may_still_run_a_cancelled_task_is_remembered(database: Database) -> None:
    for name, left in (("cancel", (None, None)), ("cancel, and ask", ("b/1", NOW))):
        one = store_graph(database, {"one": []}).tasks["one"]
        set_task(database, one, state=TaskState.RUNNING, member="b/1", due_at=1.0)
        database.write(lambda conn, name=name, one=one: MOVES[name](conn, one))  # type: ignore[misc]
        found = task(database, one)
        assert (found.member, found.due_at) == left
