"""Runs inputs of a subject until some break the law, and keeps the smallest of each kind as cases."""

import hashlib
import json
import pathlib
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field

import hypothesis
from fuzz.laws import Broken, Cost, examine
from hypothesis import strategies as st
from hypothesis.errors import Flaky

Json = typing.Any
CASES = pathlib.Path(__file__).parent / "cases"
"""Inputs that have broken the law once; `make test` tries them again."""
BATCH = 2000
"""Inputs after which hypothesis starts again: it remembers all that it has tried."""


class Subject(typing.Protocol):
    """A part of the product that takes inputs.

    :ivar cost: how many inputs of other subjects take the time of one of its own.
    """

    name: str
    cost: int

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return inputs that JSON can hold."""

    def run(self, sent: Json) -> None:
        """Give an input to the product.

        :raises Broken: the answer breaks the law; any other error breaks it, too.
        """


@dataclass
class Report:
    """The results of a subject's inputs.

    :ivar slowest: the highest number of seconds of the processor that an input has taken.
    :ivar largest: the highest number of bytes that an input has needed.
    :ivar failures: the smallest input of each kind that has broken the law, by its signature.
    """

    inputs: int = 0
    slowest: float = 0.0
    largest: int = 0
    failures: dict[str, tuple[Broken, Json]] = field(default_factory=dict)

    def add(self, cost: Cost) -> None:
        """Count an input that has kept the law."""
        self.slowest = max(self.slowest, cost.seconds)
        self.largest = max(self.largest, cost.grown)


def try_inputs(subject: Subject, inputs: int, seed: int, report: Report) -> None:
    """Try that many inputs of a subject; each batch has a seed of its own."""
    batch = 0
    while report.inputs < inputs:
        batch += 1
        before = report.inputs
        count = min(BATCH, inputs - report.inputs)
        _try_batch(subject, count, seed * 1_000_003 + batch, report)
        report.inputs = max(report.inputs, before + 1)  # Of few possible inputs, all may be known.


def _try_batch(subject: Subject, count: int, seed: int, report: Report) -> None:
    last: list[tuple[Broken, Json]] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @hypothesis.given(subject.inputs())
    def batch(sent: Json) -> None:
        report.inputs += 1
        try:
            report.add(examine(lambda: subject.run(sent)))
        except Broken as failure:
            if failure.signature in report.failures:
                return
            last[:] = [(failure, sent)]
            raise

    try:
        batch()
    except (Broken, Flaky):
        # What depends on the inputs before it does not fail again.
        [(failure, sent)] = last
        report.failures[failure.signature] = (failure, sent)


def keep(subject: Subject, report: Report, folder: pathlib.Path = CASES) -> list[pathlib.Path]:
    """Write the failures as cases, and return their files."""
    paths = []
    for failure, sent in report.failures.values():
        text = json.dumps(
            {"subject": subject.name, "why": f"{failure.law}: {failure.place}", "input": sent}, indent=1
        )
        name = f"{subject.name}-{hashlib.sha256(json.dumps(sent).encode()).hexdigest()[:10]}.json"
        paths.append(folder / name)
        paths[-1].write_text(text + "\n")
    return paths


def cases(folder: pathlib.Path = CASES) -> Iterator[tuple[str, str, Json]]:
    """Yield the name, the subject and the input of each case."""
    for path in sorted(folder.glob("*.json")):
        case = json.loads(path.read_text())
        yield path.name, case["subject"], case["input"]
