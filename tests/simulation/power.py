"""Tells how many schedules it takes to find each bug of `bugs.py`: the power of the simulation.

    python -m simulation.power --times 7 --seeds 3000 --seconds 600 [BUG …]

The median is that of the numbers of schedules from one that finds a bug to the next one that does.
"""

from simulation import campaign  # isort: skip - it decides first how oslo works

import argparse
import concurrent.futures
import itertools
import multiprocessing
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
import typing
from collections.abc import Sequence

import pytest
from simulation.bugs import BUGS


class Power(typing.NamedTuple):
    """The seeds that have found a bug, and how many were tried."""

    found_by: Sequence[int]
    tried: int

    def __str__(self) -> str:
        """Return the median of the schedules that it took, or a bound where none has found it."""
        if not self.found_by:
            return f"none of {self.tried}"
        gaps = [last - first for first, last in itertools.pairwise([-1, *self.found_by])]
        return f"{statistics.median(gaps):g} (found {len(gaps)} times in {self.tried})"


def power_for(name: str, seeds: range, times: int, seconds: float) -> Power:
    """Play schedules with a bug until it was found so many times, or the time or the seeds are used up."""
    end = time.monotonic() + seconds
    bug = BUGS[name]
    found_by: list[int] = []
    tried = 0
    folder = pathlib.Path(tempfile.gettempdir()) / f"simulation-{os.getpid()}"
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        for seed in seeds:
            folder.mkdir()
            try:
                if bug.is_found_by(seed, folder):
                    found_by.append(seed)
                    campaign.ENGINE.cache_clear()  # It may have connections to this database.
            finally:
                shutil.rmtree(folder)
            tried += 1
            if len(found_by) == times or time.monotonic() > end:
                break
    return Power(found_by, tried)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=7, help="how often each is to be found")
    parser.add_argument("--seeds", type=int, default=3000, help="schedules that each gets at most")
    parser.add_argument("--seconds", type=float, default=600.0, help="time that each gets at most")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: as many as cores")
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="parts of names; default: all bugs")
    options = parser.parse_args(arguments)
    names = [name for name in BUGS if not options.bugs or any(part in name for part in options.bugs)]
    with concurrent.futures.ProcessPoolExecutor(
        options.processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=campaign.prepare,
        max_tasks_per_child=1,
    ) as executor:
        powers = executor.map(
            power_for,
            names,
            itertools.repeat(range(options.seeds)),
            itertools.repeat(options.times),
            itertools.repeat(options.seconds),
        )
        for name, power in zip(names, powers, strict=True):
            print(f"{name}: {power}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
