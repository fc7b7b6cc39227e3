"""The words for the arrows of the state table are compared with it when their module is imported."""

import pytest
from stoker.db.states import TRANSITIONS, TaskState
from stoker.db.work.transitions import ALL, FAIL, Transition, check

WAITING = TaskState.WAITING
READY = TaskState.READY
DONE = TaskState.DONE


def test_the_words_fit_the_table() -> None:
    check(ALL, TRANSITIONS)


def test_an_arrow_without_a_word_is_an_error() -> None:
    without = [transition for transition in ALL if transition is not FAIL]
    with pytest.raises(ValueError, match="no function takes a task from running to failed"):
        check(without, TRANSITIONS)


def test_a_word_without_an_arrow_is_an_error() -> None:
    wrong = Transition("skip", frozenset({WAITING}), DONE)
    with pytest.raises(ValueError, match="skip: no task goes from waiting to done"):
        check([*ALL, wrong], TRANSITIONS)


def test_two_words_for_one_arrow_are_an_error() -> None:
    second = Transition("mark_ready", frozenset({WAITING}), READY)
    with pytest.raises(ValueError, match="unblock and mark_ready both go from waiting to ready"):
        check([*ALL, second], TRANSITIONS)


def test_a_state_that_a_task_never_leaves_needs_no_word() -> None:
    check([], {DONE: frozenset({DONE}), TaskState.FAILED: frozenset()})
