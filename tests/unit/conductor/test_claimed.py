"""The states of a claimed task: every event in every state, and what the table of them promises."""

import ast
import itertools
import pathlib
import typing

import pytest
from stoker.conductor.worker import claimed
from stoker.conductor.worker.claimed import TRANSITIONS, ClaimEvent, ClaimState, next_state
from stoker.db.ids import TaskId
from stoker.db.work.claim import Claim

# One row a state, one column an event; a dot: impossible.
TABLE = """
            start      stop       result     break      poll_later detach     close      lose
claimed     running    .          .          .          .          .          .          closed
running     .          stopping   storing    requeuing  .          .          .          lost
stopping    stopping   .          storing    requeuing  .          detached   .          lost
waiting     running    stopping   .          .          .          .          .          closed
storing     .          storing    .          .          waiting    .          closed     closed
detached    .          .          storing    storing    .          .          hung       hung
requeuing   .          requeuing  requeuing  requeuing  .          .          .          closed
lost        .          .          closed     closed     .          hung       .          lost
hung        .          .          closed     closed     .          .          .          hung
closed      .          .          closed     closed     .          .          .          closed
"""
OURS = {
    ClaimState.CLAIMED,
    ClaimState.RUNNING,
    ClaimState.STOPPING,
    ClaimState.WAITING,
    ClaimState.STORING,
    ClaimState.DETACHED,
    ClaimState.REQUEUING,
}
"""States of claims that the database gives to this conductor, as far as it knows."""
WITH_STEP = {
    ClaimState.RUNNING,
    ClaimState.STOPPING,
    ClaimState.DETACHED,
    ClaimState.LOST,
    ClaimState.HUNG,
}
PAIRS = list(itertools.product(ClaimState, ClaimEvent))


def expected() -> dict[tuple[ClaimState, ClaimEvent], ClaimState | None]:
    head, *lines = TABLE.strip("\n").splitlines()
    events = [ClaimEvent[name.upper()] for name in head.split()]
    state_after: dict[tuple[ClaimState, ClaimEvent], ClaimState | None] = {}
    for line in lines:
        name, *cells = line.split()
        for event, cell in zip(events, cells, strict=True):
            state_after[ClaimState[name.upper()], event] = None if cell == "." else ClaimState[cell.upper()]
    return state_after


def test_the_table_names_every_state_and_every_event() -> None:
    assert set(expected()) == set(PAIRS)
    assert set(TRANSITIONS) == set(ClaimState)


def test_every_event_in_every_state(subtests: pytest.Subtests) -> None:
    for (state, event), after in expected().items():
        with subtests.test(state=state.name, event=event.name):
            if after is None:
                with pytest.raises(ValueError, match="impossible"):
                    next_state(state, event)
            else:
                assert next_state(state, event) is after


def test_every_state_is_reached_and_leads_to_the_end() -> None:
    reached = {ClaimState.CLAIMED}
    while more := {after for state in reached for after in TRANSITIONS[state].values()} - reached:
        reached |= more
    assert reached == set(ClaimState)
    ending = {ClaimState.CLOSED}
    while more := {state for state in ClaimState if ending & set(TRANSITIONS[state].values())} - ending:
        ending |= more
    assert ending == set(ClaimState)


@pytest.mark.parametrize("state", ClaimState)
def test_every_claim_may_be_lost_and_none_is_ours_again(state: ClaimState) -> None:
    assert next_state(state, ClaimEvent.LOSE) not in OURS
    if state not in OURS:
        assert not OURS & set(TRANSITIONS[state].values())


@pytest.mark.parametrize("state", sorted(WITH_STEP, key=lambda state: state.value))
def test_a_step_that_has_not_ended_may_end_with_and_without_a_result(state: ClaimState) -> None:
    for event in (ClaimEvent.RESULT, ClaimEvent.BREAK):
        assert next_state(state, event) not in WITH_STEP


def test_a_claim_has_run_no_step_and_hangs_on_no_thread_before_its_events() -> None:
    claim = claimed.ClaimedTask(typing.cast(Claim, None), (TaskId(1), 1))
    assert (claim.since, claim.has_run, claim.state) == (0.0, False, ClaimState.CLAIMED)
    states = []
    for event in (ClaimEvent.START, ClaimEvent.STOP, ClaimEvent.DETACH, ClaimEvent.LOSE, ClaimEvent.RESULT):
        claim.move(event)
        states.append((claim.state, claim.is_detached))
    assert states == [
        (ClaimState.RUNNING, False),
        (ClaimState.STOPPING, False),
        (ClaimState.DETACHED, True),
        (ClaimState.HUNG, True),
        (ClaimState.CLOSED, False),
    ]


def test_only_a_step_that_should_have_stopped_is_detached() -> None:
    assert {state for state in ClaimState if ClaimEvent.DETACH in TRANSITIONS[state]} == {
        ClaimState.STOPPING,
        ClaimState.LOST,
    }


def test_nothing_but_move_changes_the_state_of_a_claim() -> None:
    changes = []
    for path in pathlib.Path(claimed.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                changes += [
                    (path.name, function.name, ast.unparse(target.value))
                    for node in ast.walk(function)
                    if isinstance(node, ast.Assign)
                    for target in node.targets
                    if isinstance(target, ast.Attribute) and target.attr == "state"
                ]
    assert sorted(change for change in changes if change[2] != "job") == [
        ("claimed.py", "move", "self"),
        ("pool.py", "__init__", "self"),
    ], "the pool's are the states of the pool's jobs"
