"""Tries faults in what runs when a module is loaded: each in a fork that has nothing of Stoker loaded yet."""

import json
import os
import sys

import pytest
from mutate import planting
from mutate.trying import FAILS, SURVIVES, Job, attempt

LIBRARIES = (
    "sqlalchemy",
    "oslo_config.cfg",
    "oslo_messaging",
    "keystoneauth1.session",
    "falcon",
    "hypothesis",
)
"""Packages that take long to load, and have nothing of ours in them."""


def main() -> None:
    """Answer each line of standard input, as `trying` does."""
    for name in LIBRARIES:
        __import__(name)
    assert not any(name == "stoker" or name.startswith("stoker.") for name in sys.modules)
    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    for line in sys.stdin:
        job = Job.parse(line)
        outcome, seconds = attempt(job, lambda: _try(job))  # noqa: B023 - used at once
        answers.write(json.dumps({"outcome": outcome, "seconds": seconds}) + "\n")


def _try(job: Job) -> int:
    planting.load(job.mutant)
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *job.tests])
    return SURVIVES if code == pytest.ExitCode.OK else FAILS


if __name__ == "__main__":
    main()
