"""The schedules find what they are there to find: bugs that are put in on purpose, one in each test."""

import pathlib

import pytest
from simulation.bugs import BUGS, Bug

SEEDS = 100
"""Schedules that may be tried: the design asks for a thousand."""


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=name, marks=[pytest.mark.full] if bug.is_rare else [])
        for name, bug in BUGS.items()
    ],
)
def test_the_schedules_find_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, bug: Bug) -> None:
    bug.plant(monkeypatch)
    for seed in range(bug.since, bug.since + SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if bug.is_found_by(seed, folder):
            return
        print(f"seed {seed} does not find it")
    pytest.fail(f"{SEEDS} seeds did not find it")
