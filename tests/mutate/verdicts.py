"""The fate of a fault, which counts as noticed only where the same tests succeed without it.

A test that fails or hangs in a fork may do so because the machine is busy, or does not bear the fork.
So each test that has noticed something is tried once without a fault, after the same tests as before.
"""

import dataclasses
import enum
import json
import typing
from collections.abc import Container

from mutate.forks import End, Tell, Trial, attempt
from mutate.kernel import ROOT
from mutate.operators import Mutant

SLOWER = 10
"""How many times as long as without it tests may take with a fault: it may be endless."""
PATIENCE = 6
"""How many times as long the same tests may take without a fault, before the machine is too busy to tell."""


class Outcome(enum.StrEnum):
    """The end of a fault."""

    NOTICED = "noticed"  #: a test failed
    ENDLESS = "endless"  #: a test took ten times as long as without it
    LIVES = "lives"  #: no test failed
    UNTESTED = "untested"  #: no test runs the line
    NOT_PLANTED = "not planted"  #: what runs when the module is loaded needs a new process
    UNDECIDED = "undecided"  #: the tests fail without it, too, or the module has changed; to be tried again


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

    def only(self, tests: Container[str]) -> "Job":
        """Return the job with those of its tests that exist."""
        return dataclasses.replace(self, tests=[test for test in self.tests if test in tests])


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The fate of a fault."""

    outcome: Outcome
    seconds: float
    test: str = ""  #: the one that has noticed it

    @classmethod
    def parse(cls, line: str) -> "Verdict":
        """Return what `line` has stored."""
        document = json.loads(line)
        return cls(Outcome(document["outcome"]), document["seconds"], document["test"])

    def line(self) -> str:
        """Return the verdict as a line of JSON."""
        return json.dumps(dataclasses.asdict(self)) + "\n"


Run = typing.Callable[[Mutant | None, list[str], Tell], int]
"""Plants a fault, or none, in this process, and runs tests until one fails; returns the exit code."""


class Verdicts:
    """Tries faults in forks of this process."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._trusted: set[str] = set()
        self._distrusted: set[str] = set()

    def of(self, job: Job) -> Verdict:
        """Return what becomes of a fault."""
        seconds = 0.0
        if not job.tests:
            return Verdict(Outcome.UNTESTED, seconds)
        if not job.mutant.fits((ROOT / job.mutant.path).read_bytes()):
            return Verdict(Outcome.UNDECIDED, seconds)
        # Each turn but the last one finds a test that fails without a fault.
        for _ in range(4):
            tests = [test for test in job.tests if test not in self._distrusted]
            if not tests:
                break
            trial = self._try(job.mutant, tests, job.seconds)
            seconds += trial.seconds
            if trial.end in _CLEAR:
                return Verdict(_CLEAR[trial.end], seconds)
            same = tests[: tests.index(trial.test) + 1] if trial.test in tests else tests[:1]
            control = self._control(same, trial, job.seconds)
            if control is None or control.end == End.SURVIVED:
                if trial.end == End.FAILED:
                    self._trusted.add(trial.test)
                    return Verdict(Outcome.NOTICED, seconds, trial.test)
                if trial.end == End.COMPUTES or self._is_late_again(job, same, control):
                    return Verdict(Outcome.ENDLESS, seconds, trial.test)
            elif control.end == End.FAILED:
                self._distrusted.add(control.test)
            else:
                break
        return Verdict(Outcome.UNDECIDED, seconds)

    def _try(self, mutant: Mutant | None, tests: list[str], seconds: float) -> Trial:
        return attempt(
            lambda tell: self._run(mutant, tests, tell), seconds=seconds, processor=max(10.0, seconds / 2)
        )

    def _control(self, tests: list[str], trial: Trial, seconds: float) -> Trial | None:
        """Run the tests without a fault; None: that is known to succeed."""
        if trial.end == End.FAILED and trial.test in self._trusted:
            return None
        return self._try(None, tests, PATIENCE * seconds)

    def _is_late_again(self, job: Job, tests: list[str], control: Trial | None) -> bool:
        assert control is not None
        again = self._try(job.mutant, tests, max(job.seconds, SLOWER * control.seconds))
        return again.end in (End.LATE, End.COMPUTES)


_CLEAR = {End.SURVIVED: Outcome.LIVES, End.CANNOT: Outcome.NOT_PLANTED}
