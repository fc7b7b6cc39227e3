"""Stoker's code under random schedules with faults.

A failing seed is replayed by ``python -m pytest tests/simulation --seed N``; more seeds than the usual ones
are tried with ``--seeds COUNT``.
"""

import pathlib

from simulation.schedule import Run

LENGTH = 500


def test_the_invariants_hold_whatever_is_lost_late_doubled_or_killed(
    simulation_seed: int, tmp_path: pathlib.Path
) -> None:
    run = Run(simulation_seed, tmp_path)
    run.go(LENGTH)
    run.check()
    run.clean_up()
    run.check()
