"""How work spreads over one, two and four conductors, while neither cores nor database are short.

Usage:
    python benchmarks/scaling.py            start RabbitMQ, PostgreSQL, etcd and the conductors
    options: --resources 640   --seconds 0.5   --threads 8   --conductors 1,2,4

Each step sits in a call for a while, as one to a slow service does, and holds its thread.  So the threads are
the limit, and twice as many conductors take half the time; what is missing to that is lost to the ring, the
messages, and conductors that wait for each other.  Once all resources are in one stack, and once in many.
The processor time says how far the cores are from being the limit.
"""

import argparse
import pathlib
import sys
import time
import typing
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import idle
from harness import templates
from harness.deployment import Deployment
from own_installation import own_installation

Json = typing.Any
STACKS = 40
"""Stacks that share the resources where they are many."""
WITHIN = 900.0
TARGET = 0.8


class Run(typing.NamedTuple):
    """One measurement.

    :ivar rate: resources a second.
    :ivar cpu: share of a core that all conductors took.
    """

    conductors: int
    stacks: int
    rate: float
    cpu: float


def measure(installation: Deployment, resources: int, stacks: int, seconds: float) -> Run:
    """Create so many resources in so many stacks, and wait for the last one."""
    each = resources // stacks
    body = {"type": "Test::Blocking", "properties": {"seconds": seconds}}
    template = templates.template({f"r{index}": body for index in range(each)})
    pids = [daemon.pid for daemon in installation.conductors.values()]
    before = sum(map(idle.tree_cpu, pids))
    run = time.time_ns()
    began = time.monotonic()
    paths = [installation.create(f"s{run}-{number}", template) for number in range(stacks)]
    for path in paths:
        view = installation.wait_final(path, WITHIN)
        assert view["stack_status"] == "CREATE_COMPLETE", view["stack_status_reason"]
    elapsed = time.monotonic() - began
    cpu = (sum(map(idle.tree_cpu, pids)) - before) / elapsed
    return Run(len(pids), stacks, each * stacks / elapsed, cpu)


def report(runs: Sequence[Run], limit: float) -> None:
    """Print the runs.

    :param limit: resources a second that the threads of one conductor allow.
    """
    print(
        f"{'stacks':>8}{'conductors':>12}{'res./s':>9}{'of linear':>11}{'of threads':>12}{'CPU, cores':>12}"
    )
    firsts: dict[int, Run] = {}
    for run in runs:
        first = firsts.setdefault(run.stacks, run)
        linear = run.rate / first.rate / (run.conductors / first.conductors)
        share = run.rate / (limit * run.conductors)
        print(
            f"{run.stacks:>8}{run.conductors:>12}{run.rate:>9.1f}{linear:>11.2f}{share:>12.2f}{run.cpu:>12.2f}"
        )
    print(f"target: {TARGET} of linear")


def main() -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resources", type=int, default=640)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--conductors", default="1,2,4")
    options = parser.parse_args()
    runs: list[Run] = []
    for count in map(int, options.conductors.split(",")):
        hosts = [f"c{number}" for number in range(count)]
        settings = f"[conductor]\nthreads = {options.threads}\n"
        with own_installation(*hosts, options=settings, has_plugins=True) as installation:
            measure(installation, STACKS, 1, 0.01)  # Compiles statements.
            runs += [
                measure(installation, options.resources, stacks, options.seconds) for stacks in (1, STACKS)
            ]
    report(sorted(runs, key=lambda run: (run.stacks, run.conductors)), options.threads / options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
