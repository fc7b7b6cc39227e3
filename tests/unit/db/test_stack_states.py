"""The table of a stack's transitions is checked when it is imported, and says which requests are allowed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from stoker.db.stack_states import (
    TRANSITIONS,
    Actor,
    ForbiddenTransition,
    StackTransition,
    allows,
    check,
    check_arrow,
    may_end,
)
from stoker.db.states import StackState, Status

CREATING = StackState("CREATE", Status.IN_PROGRESS)
CREATED = StackState("CREATE", Status.COMPLETE)
DELETED = StackState("DELETE", Status.COMPLETE)
SUSPENDED = StackState("SUSPEND", Status.COMPLETE)
UPDATING = StackState("UPDATE", Status.IN_PROGRESS)


def without(*words: str) -> Sequence[StackTransition]:
    return [transition for transition in TRANSITIONS if transition.word not in words]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("complete",), "IN_PROGRESS cannot end as complete and as failed"),
        (("fail", "cancel"), "IN_PROGRESS cannot end as complete and as failed"),
        (("delete",), "no stack leaves DELETE_FAILED"),
    ],
)
def test_a_state_without_a_way_on_is_an_error(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(without(*words))


def test_an_action_that_ends_but_never_begins_is_an_error() -> None:
    imported = {(None, StackState("MOVE", status)) for status in (Status.COMPLETE, Status.FAILED)}
    moved = StackTransition("move", frozenset({Actor.OPERATOR}), frozenset(imported))
    with pytest.raises(ValueError, match="no stack comes to MOVE_IN_PROGRESS"):
        check([*TRANSITIONS, moved])


def test_two_words_of_one_actor_for_one_arrow_are_an_error() -> None:
    [update] = [transition for transition in TRANSITIONS if transition.word == "update"]
    with pytest.raises(ValueError, match="update and change of the conductor both go to UPDATE_IN_PROGRESS"):
        check([*TRANSITIONS, replace(update, word="change", actors=frozenset({Actor.CONDUCTOR}))])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (CREATED, UPDATING),
        (UPDATING, UPDATING),
        (UPDATING, StackState("ROLLBACK", Status.IN_PROGRESS)),
        (SUSPENDED, StackState("RESUME", Status.IN_PROGRESS)),
        (None, CREATING),
        (StackState("DELETE", Status.FAILED), StackState("DELETE", Status.IN_PROGRESS)),
    ],
)
def test_an_arrow_of_the_table_is_allowed(source: StackState | None, target: StackState) -> None:
    check_arrow(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (None, UPDATING),
        (SUSPENDED, UPDATING),
        (DELETED, UPDATING),
        (DELETED, StackState("DELETE", Status.IN_PROGRESS)),
        (CREATED, StackState("CREATE", Status.FAILED)),
        (CREATED, StackState("ROLLBACK", Status.IN_PROGRESS)),
        (UPDATING, StackState("CHECK", Status.IN_PROGRESS)),
        (CREATING, StackState("UPDATE", Status.COMPLETE)),
    ],
)
def test_another_one_is_forbidden(source: StackState | None, target: StackState) -> None:
    with pytest.raises(ForbiddenTransition, match=f"no stack goes from {source or 'nothing'} to {target}"):
        check_arrow(source, target)


def test_only_a_user_rolls_back_while_an_update_is_in_progress() -> None:
    assert allows(UPDATING, "ROLLBACK", Actor.USER)
    assert not allows(UPDATING, "ROLLBACK", Actor.CONDUCTOR)
    assert not allows(StackState("RESTORE", Status.IN_PROGRESS), "ROLLBACK", Actor.USER)


def test_a_deletion_fails_but_no_user_cancels_it() -> None:
    deleting = StackState("DELETE", Status.IN_PROGRESS)
    assert may_end(deleting, Actor.OPERATOR)
    assert not may_end(deleting, Actor.USER)
    assert may_end(UPDATING, Actor.USER)
    assert not may_end(CREATED, Actor.USER)
