"""Measure the cost of expressions in helper processes.

Usage:
    python benchmarks/expressions.py [--calls 2000]

Printed are the first call, the following ones, the call after a helper was killed, and the memory that
belongs to each of the processes alone.  The exit code is 1 where the median of a small call is above 2 ms.
"""

import argparse
import os
import pathlib
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from stoker.template.sandbox.limits import HelperLimits
from stoker.template.sandbox.pool import HelperPool

TARGET = 0.002
DATA = [{"name": f"server{number}", "ram": number} for number in range(20)]


def timed(function: Callable[[], object]) -> float:
    """Return the seconds that the call takes."""
    since = time.perf_counter()
    function()
    return time.perf_counter() - since


def shown(title: str, seconds: Sequence[float]) -> None:
    """Print median and 99th percentile."""
    last = sorted(seconds)[int(len(seconds) * 0.99)]
    print(f"{title}: median {statistics.median(seconds) * 1e3:.2f} ms, 99 % within {last * 1e3:.2f} ms")


def own_memory(pid: int) -> int:
    """Return the bytes that no other process shares."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def main() -> int:
    """Measure; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    calls = parser.parse_args().calls
    pool = HelperPool(HelperLimits())
    print(f"first call, with the start: {timed(lambda: pool.yaql('1', None)) * 1e3:.0f} ms")
    expressions = {
        "$.data.len()": "YAQL, small",
        "$.data.where($.ram > 5).select($.name).join(',')": "YAQL, 20 maps filtered and joined",
    }
    medians = []
    for expression, title in expressions.items():
        seconds = [timed(lambda: pool.yaql(expression, DATA)) for _ in range(calls)]  # noqa: B023
        shown(title, seconds)
        medians.append(statistics.median(seconds))
    seconds = [timed(lambda: pool.match("[a-z][a-z0-9-]*", "server-1")) for _ in range(calls)]
    shown("allowed_pattern", seconds)
    after = []
    for _ in range(max(5, calls // 100)):
        os.kill(pool.pids()[1], signal.SIGKILL)
        after.append(timed(lambda: pool.yaql("$.data.len()", DATA)))
    shown("YAQL, small, its helper was killed", after)
    fork_server, helper = pool.pids()
    megabytes = [own_memory(pid) / 1e6 for pid in (fork_server, helper)]
    print(f"memory: fork server {megabytes[0]:.1f} MB, helper {megabytes[1]:.1f} MB")
    pool.close()
    return int(medians[0] > TARGET)


if __name__ == "__main__":
    sys.exit(main())
