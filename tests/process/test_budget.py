"""Requests that ask for much more than they send are refused soon, and before they have taken the memory."""

import json
import os
import pathlib
import subprocess
import sys

from harness import attacks

SECONDS = 2.0
MIB = 100.0
"""Processor time and memory that a request may take that is refused.

The time is for the reference machine, on which the slowest attacks take 1 s: 2,000,000 steps of work,
each of which shall take less than a microsecond.  A slower host has longer by the factor that `harness.pace`
measures in the attack's own process, before and after it.  So other tests may run beside it.
"""


def test_excessive_templates_are_refused_soon_and_take_little_memory() -> None:
    tests = pathlib.Path(attacks.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-m", "harness.attacks"],
        cwd=tests,
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=840,
        check=True,
    )
    reports = {report["name"]: report for report in map(json.loads, ended.stdout.splitlines())}
    killed = [name for name in attacks.names() if name not in reports]
    assert not killed, f"took too long or too much: {killed}\n{ended.stderr[-2000:]}"
    for name, report in reports.items():
        expected = attacks.expected(name)
        assert report["ended"].startswith(expected), name
        assert bool(expected) == bool(report["ended"]), f"{name}: {report['ended']}"
        used = report["seconds"]
        most = SECONDS * report["slower"]
        assert used < most, f"{name} takes {used:.1f} of {most:.1f} seconds of processor time"
        assert report["mib"] < MIB, f"{name} takes {report['mib']:.0f} MiB"
