"""Wildcards in names."""

import fnmatch
import random
import time

import pytest
from stoker.template.budget import Budget
from stoker.template.errors import LimitExceeded
from stoker.template.wildcards import MOST_CHARACTERS, WildNames, compiled, fits, matching


@pytest.mark.parametrize(
    ("name", "pattern", "fit"),
    [
        ("web", "web", True),
        ("web", "w*", True),
        ("web", "w?b", True),
        ("web", "[vw]eb", True),
        ("web", "W*", False),
        ("web", "*x", False),
        ("[web", "[web", True),
        ("a" * 255, "*a" * 255, True),
        ("a" * 255, "*a" * 256, False),
    ],
)
def test_a_wildcard_matches_any_characters(name, pattern, fit):
    assert fits(name, pattern) is fit


@pytest.mark.parametrize("part", ["[a", "*a", "[!a]", "?"])
def test_a_long_pattern_costs_nothing(part):
    since = time.thread_time()
    assert not fits("b" * 255, part * 40_000)
    assert not fits("b" * 255, (part * MOST_CHARACTERS)[: MOST_CHARACTERS - 1] + "c")
    assert time.thread_time() - since < 5


def test_a_pattern_matches_what_it_matches_in_a_shell():
    chosen = random.Random(5)
    names = ["".join(chosen.choices("ab", k=chosen.randrange(7))) for _ in range(60)]
    for _ in range(600):
        chars = chosen.choices("ab*?", [3, 3, 3, 1], k=chosen.randrange(6))
        key = "".join([*chars, "*"][:: chosen.choice([-1, 1])])
        pattern = compiled(key, Budget())
        for name in names:
            assert pattern.fits(name) is fnmatch.fnmatchcase(name, key), (name, key)


def test_the_compilation_of_patterns_is_charged_once_and_before_it_is_done():
    entries = {f"{'[' * 900}{index}": {} for index in range(1000)}
    with pytest.raises(LimitExceeded):
        [*matching(entries, "name", WildNames(), Budget())]
    few = {key: entries[key] for key in [*entries][:10]}
    budget, wild = Budget(), WildNames()
    assert [*matching(few, "name", wild, budget)] == []
    first = budget.steps
    assert [*matching(few, "name", wild, budget)] == []
    assert first > 100 * (budget.steps - first)
