"""Tries faults in what runs when a module is loaded: each in a fork that has nothing of Stoker loaded yet."""

import os
import sys
import typing

import pytest
from mutate import planting
from mutate.examples import same_examples
from mutate.forks import FAILS, SURVIVES, Tell
from mutate.operators import Mutant
from mutate.verdicts import Job, Verdicts

LIBRARIES = (
    "sqlalchemy",
    "oslo_config.cfg",
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
    verdicts = Verdicts(_run)
    for line in sys.stdin:
        answers.write(verdicts.of(Job.parse(line)).line())


class _Telling:
    """A plugin that names the test that is run, which has the same examples each time."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        same_examples()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> typing.Any:
        self._tell(item.nodeid)


def _run(mutant: Mutant | None, tests: list[str], tell: Tell) -> int:
    if mutant is not None:
        planting.load(mutant)
    options = ["-q", "-x", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[_Telling(tell)])
    return SURVIVES if code == pytest.ExitCode.OK else FAILS


if __name__ == "__main__":
    main()
