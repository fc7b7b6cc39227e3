"""Plays many random schedules on all cores, and reports what they covered.

    python -m simulation.campaign --seeds 100000       each seed with stacks alone, and with nested ones

Half of the schedules have a focus, once the first round has shown which pairs of a fault and an action are
rare.  A failure is printed with the command that replays it.  The exit code is 1 if there was one.
"""

from stoker.cli.daemon import threading_backend  # noqa: F401  - first: it decides how oslo works

import argparse  # isort: skip
import concurrent.futures
import dataclasses
import functools
import itertools
import logging
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback
import typing
from collections.abc import Iterable, Iterator, Sequence
from unittest import mock

from simulation.coverage import Coverage, Pair
from simulation.schedule import LENGTH, play
from stoker.db import connections, engine
from stoker.template.sandbox import pool

ROUND = 100
"""Schedules of a round, after which the rarest pairs are chosen again."""
SOUGHT = 20
"""Pairs that a round seeks."""
HISTORIES_OF_A_PROCESS = 500
"""Schedules after which a new process takes over."""
WALL_CLOCK = 60.0
"""Seconds for which an expression may be evaluated: the host may pause."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A schedule to play.

    :ivar length: its events.
    :ivar nested: whether there are stacks inside of the stacks.
    """

    seed: int
    length: int
    nested: bool
    focus: Pair | None = None

    @property
    def command(self) -> str:
        """Return the command that replays it."""
        test = "in_trees" if self.nested else "whatever"
        focus = "" if self.focus is None else f" --focus {self.focus}"
        options = f"-k {test} --seed {self.seed}{focus}"
        return f".venv/bin/python -m pytest tests/simulation/test_schedules.py {options}"


ENGINE = functools.cache(connections.make_engine)
"""The engine of a process's schedules, whose databases have one path, one after the other.

A new engine compiles all statements again, which takes a fifth of the processor time of a schedule.
"""


class Outcome(typing.NamedTuple):
    """:ivar failure: the traceback; None: everything held."""

    job: Job
    coverage: Coverage
    failure: str | None


def prepare() -> None:
    """Prepare a process as tests/conftest.py does; its log would report each fault."""
    logging.disable()
    pool.WALL_CLOCK = WALL_CLOCK
    pool.install()
    mock.patch.object(engine, "make_engine", ENGINE).start()


def run(job: Job) -> Outcome:
    """Play a schedule in an empty folder."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"simulation-{os.getpid()}"
    folder.mkdir()
    try:
        played = play(job.seed, folder, job.length, nested=job.nested, focus=job.focus)
    except Exception:  # noqa: BLE001 - whatever it is, the next one is played
        ENGINE.cache_clear()  # It may have connections to this database.
        return Outcome(job, Coverage(runs=1), traceback.format_exc())
    finally:
        shutil.rmtree(folder)
    return Outcome(job, played.coverage, None)


def rounds(seeds: range, length: int, covered: Coverage) -> Iterator[list[Job]]:
    """Yield the schedules of each round.

    :param covered: what the rounds before have covered, which the caller adds.
    """
    jobs = (Job(seed, length, nested) for seed in seeds for nested in (False, True))
    while chosen := list(itertools.islice(jobs, ROUND)):
        rarest = itertools.cycle(covered.rarest(SOUGHT)) if covered.runs else itertools.repeat(None)
        yield [dataclasses.replace(job, focus=next(rarest)) if job.seed % 2 else job for job in chosen]


def campaign(seeds: range, *, length: int, processes: int) -> tuple[Coverage, list[Outcome]]:
    """Play all schedules; return the coverage, and the failures.

    After an interrupt (Ctrl-C) it returns those of the rounds before.
    """
    covered = Coverage()
    failures: list[Outcome] = []
    began = time.monotonic()
    executor = concurrent.futures.ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=prepare,
        max_tasks_per_child=HISTORIES_OF_A_PROCESS,
    )
    try:
        for jobs in rounds(seeds, length, covered):
            for outcome in executor.map(run, jobs):
                covered.add(outcome.coverage)
                if outcome.failure is not None:
                    failures.append(outcome)
                    print(f"{outcome.failure}\nfailed; replay: {outcome.job.command}", flush=True)
            _print_progress(covered, len(failures), 2 * len(seeds), time.monotonic() - began)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        executor.shutdown(cancel_futures=True)
    return covered, failures


def _print_progress(covered: Coverage, failed: int, total: int, seconds: float) -> None:
    rate = covered.runs / seconds
    print(f"{covered.runs:,} of {total:,} runs, {rate:.1f}/s, {failed} failed", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds; default: %(default)s")
    parser.add_argument("--first", type=int, default=0, help="the first seed; default: %(default)s")
    parser.add_argument("--length", type=int, default=LENGTH, help="events of a run; default: %(default)s")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: as many as cores")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    covered, failures = campaign(seeds, length=options.length, processes=options.processes)
    print(covered.report())
    print(_summary(failures))
    return 1 if failures or not covered.runs else 0


def _summary(failures: Iterable[Outcome]) -> str:
    commands = [outcome.job.command for outcome in failures]
    return "\n".join(["Failures:", *commands]) if commands else "No failures."


if __name__ == "__main__":
    sys.exit(main())
