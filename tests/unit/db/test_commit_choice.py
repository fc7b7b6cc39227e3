"""Which tasks a group commit claims: those that it has made ready come first, one for each stored outcome."""

import typing

import pytest
from stoker.db.work.commit import choose, continued

CASES: dict[str, tuple[dict[str, typing.Any], list[str], list[int]]] = {
    "nothing": ({}, [], []),
    "hints only": ({"hinted": [1, 2, 3], "slots": 2}, [], [1, 2]),
    "a successor for each outcome": ({"free": ["a", "b"], "slots": 9, "fresh": 2}, ["a", "b"], []),
    "more successors than outcomes": ({"free": ["a", "b"], "slots": 9, "fresh": 1}, ["a"], []),
    "more successors than slots": ({"free": ["a", "b"], "slots": 1, "fresh": 2}, ["a"], []),
    "continued after successors": ({"free": ["a"], "ready": [7, 8], "slots": 9, "fresh": 2}, ["a"], [7]),
    "hints fill what is left": (
        {"free": ["a"], "ready": [7], "hinted": [1, 2], "slots": 3, "fresh": 2},
        ["a"],
        [7, 1],
    ),
    "no slots": ({"free": ["a"], "ready": [7], "hinted": [1], "slots": 0, "fresh": 1}, [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_a_commit_claims(case: str) -> None:
    options, free, numbered = CASES[case]
    usual: dict[str, typing.Any] = {"free": [], "ready": [], "hinted": [], "slots": 0, "fresh": 0}
    state = {**usual, **options}
    chosen = choose(
        state["free"], state["ready"], state["hinted"], slots=state["slots"], fresh=state["fresh"]
    )
    assert (list(chosen[0]), chosen[1]) == (free, numbered)


@pytest.mark.parametrize(
    ("stored", "slots", "others", "expected"),
    [
        (2, 9, 0, 2),
        (9, 4, 0, 4),
        (9, 4, 1, 3),
        (9, 4, 9, 2),
        (9, 5, 9, 2),
        (9, 1, 9, 0),
        (0, 4, 9, 0),
    ],
)
def test_half_of_the_slots_are_kept_for_other_projects(
    stored: int, slots: int, others: int, expected: int
) -> None:
    assert continued(stored, slots=slots, others=others) == expected
