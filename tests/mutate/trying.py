"""A plugin of pytest that plants faults instead of running its tests: one after the other, each in a fork.

The faults come as lines on standard input, ``{"mutant": {...}, "tests": [...], "seconds": ...}``, the answers
go to the descriptor of ``--mutate-answers``.
"""

import contextlib
import dataclasses
import enum
import json
import os
import select
import signal
import sys
import time
import typing

import hypothesis
import pytest
from mutate import planting
from mutate.operators import Mutant


class Outcome(enum.StrEnum):
    """The end of a fault."""

    NOTICED = "noticed"  #: a test failed
    ENDLESS = "endless"  #: a test took ten times as long as without it
    LIVES = "lives"  #: no test failed
    UNTESTED = "untested"  #: no test runs the line
    NOT_PLANTED = "not planted"  #: what runs when the module is loaded needs a new process


SURVIVES, FAILS, CANNOT = 0, 1, 2
"""Exit codes of a fork."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A fault, and the tests that shall notice it."""

    mutant: Mutant
    tests: list[str]  #: the cheapest first
    seconds: float  #: how long they may take

    @classmethod
    def parse(cls, line: str) -> "Job":
        """Return what `line` has stored."""
        document = json.loads(line)
        return cls(Mutant(**document["mutant"]), document["tests"], document["seconds"])

    def line(self) -> str:
        """Return the job as a line of JSON."""
        return json.dumps(dataclasses.asdict(self)) + "\n"


def attempt(job: Job, run: typing.Callable[[], int]) -> tuple[Outcome, float]:
    """Run something in a fork that ends within the job's time, with all processes that it starts."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(quiet, descriptor)
            code = run()
        except BaseException:  # noqa: BLE001 - top of a process
            code = FAILS
        finally:
            os._exit(code)
    watch = os.pidfd_open(child)
    try:
        ended = _ends_within(watch, job.seconds)
        if not ended:
            os.killpg(child, signal.SIGKILL)
    finally:
        os.close(watch)
    _, status = os.waitpid(child, 0)
    _end_group(child)
    outcome = Outcome.NOTICED
    if not ended:
        outcome = Outcome.ENDLESS
    elif os.WIFEXITED(status):
        outcome = {SURVIVES: Outcome.LIVES, CANNOT: Outcome.NOT_PLANTED}.get(
            os.WEXITSTATUS(status), Outcome.NOTICED
        )
    return outcome, time.monotonic() - began


def _end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def same_examples() -> None:
    """Let hypothesis give the same examples to a test each time."""
    hypothesis.settings.register_profile(
        "mutate", hypothesis.settings(derandomize=True, database=None, deadline=None)
    )
    hypothesis.settings.load_profile("mutate")


class Trying:
    """Takes the place of pytest's loop over its tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer each line of standard input."""
        items = {item.nodeid: item for item in session.items}
        planting.CACHES[:] = planting.caches()
        answers = os.fdopen(session.config.option.mutate_answers, "w", buffering=1)
        for line in sys.stdin:
            job = Job.parse(line)
            chosen = [items[name] for name in job.tests if name in items]
            outcome, seconds = attempt(job, lambda: _try(session, job, chosen))  # noqa: B023 - used at once
            answers.write(json.dumps({"outcome": outcome, "seconds": seconds}) + "\n")
        return True


def _try(session: pytest.Session, job: Job, items: list[pytest.Item]) -> int:
    try:
        planting.plant(job.mutant)
    except planting.NotPlanted:
        return CANNOT
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return FAILS
    return SURVIVES


def _ends_within(watch: int, seconds: float) -> bool:
    """Wait for the end of a process; return whether it came in time."""
    readable, _, _ = select.select([watch], [], [], seconds)
    return bool(readable)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, for the suite clears the variables of its caller."""
    parser.addoption("--mutate-answers", type=int, help="where to write what became of the faults")


def pytest_configure(config: pytest.Config) -> None:
    """Register the loop."""
    config.pluginmanager.register(Trying(), "trying")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """A fault shall not live or die by chance."""
    same_examples()
