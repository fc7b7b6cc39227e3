"""Stoker's code under random schedules with faults.

A failing seed is replayed by ``python -m pytest tests/simulation --seed N``; more seeds than the usual ones
are tried with ``--seeds COUNT``, and by ``make simulate``, which counts what they cover.
"""

import os
import pathlib
import subprocess
import sys

from simulation.coverage import Pair
from simulation.schedule import play

TESTS = pathlib.Path(__file__).parents[1]
FINGERPRINT = """
import pathlib, sys, tempfile
import pytest
from simulation.schedule import play
from stoker.template.sandbox import pool
pool.WALL_CLOCK = 60.0
pool.install()
with tempfile.TemporaryDirectory() as folder:
    print(play(int(sys.argv[1]), pathlib.Path(folder), 200).fingerprint())
"""


def test_the_invariants_hold_whatever_is_lost_late_doubled_or_killed(
    simulation_seed: int, tmp_path: pathlib.Path, focus: Pair | None
) -> None:
    play(simulation_seed, tmp_path, focus=focus)


def test_they_hold_in_trees_of_stacks_too(
    simulation_seed: int, tmp_path: pathlib.Path, focus: Pair | None
) -> None:
    play(simulation_seed, tmp_path, nested=True, focus=focus)


def test_a_seed_replays_exactly(tmp_path: pathlib.Path) -> None:
    def fingerprint(hash_seed: str) -> str:
        """In another process, whose sets are in another order."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", FINGERPRINT, "4"],
            capture_output=True,
            text=True,
            check=False,
            cwd=TESTS,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert fingerprint("1") == fingerprint("2")
