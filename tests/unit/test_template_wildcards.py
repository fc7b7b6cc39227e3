"""Wildcards in names."""

import time

import pytest
from stoker.template.environment import MOST_CHARACTERS, fits


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
