"""Log lines that would repeat with each try."""

import pytest
from stoker.observe import seldom
from stoker.observe.seldom import EVERY, Seldom


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_a_line_of_a_kind_passes_once_in_a_minute() -> None:
    clock = Clock()
    lines = Seldom(clock)
    assert lines.passes("duty", "ValueError")
    assert [lines.passes("duty", "ValueError") for _ in range(100)] == [False] * 100
    assert lines.passes("duty", "KeyError")
    clock.now += EVERY
    assert lines.passes("duty", "ValueError")
    assert not lines.passes("duty", "ValueError")


def test_few_kinds_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seldom, "MOST_KINDS", 2)
    lines = Seldom(Clock())
    assert [lines.passes(kind) for kind in ("a", "b", "c", "c", "a")] == [True, True, True, False, True]
