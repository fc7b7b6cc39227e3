"""Fuzzing: inputs that broke the law once are tried again, random ones are tried, and a breach is noticed."""

import pathlib
import sys
import time
import typing
from collections.abc import Callable, Mapping

import pytest
from fuzz import laws
from fuzz.laws import CANARY, MOST_BYTES, Broken, check_status, check_text, examine, prepare
from fuzz.running import Report, Subject, cases, keep, try_inputs
from fuzz.subjects import SUBJECTS
from harness import pace
from hypothesis import strategies as st

Json = typing.Any
INPUTS = 500
SEED = 1
"""Inputs of each subject that the full tests try; of one that costs more, fewer."""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Subject]:
    prepare()
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in SUBJECTS.items()}


def test_inputs_that_broke_the_law_once_keep_it(subjects: Mapping[str, Subject]) -> None:
    failures = []
    for name, subject, sent in cases():
        try:
            examine(lambda subject=subject, sent=sent: subjects[subject].run(sent))
        except Broken as failure:
            failures.append(f"{name}: {failure}")
    assert not failures, "\n".join(failures)


@pytest.mark.full
@pytest.mark.parametrize("name", SUBJECTS)
def test_random_inputs_keep_it(subjects: Mapping[str, Subject], name: str) -> None:
    """The same ones in each run: `make fuzz` tries others."""
    report = Report()
    inputs = INPUTS // subjects[name].cost
    try_inputs(subjects[name], inputs, SEED, report)
    assert report.inputs >= inputs
    assert not report.failures, [failure[1] for failure in report.failures.values()]


class Planted:
    """A subject that breaks the law for numbers above 1000."""

    name = "planted"
    cost = 1

    def __init__(self, breach: Callable[[], None]) -> None:
        self._breach = breach

    def inputs(self) -> st.SearchStrategy[Json]:
        return st.integers(0, 100_000)

    def run(self, sent: Json) -> None:
        if sent > 1000:
            self._breach()


def _compute() -> None:
    since = time.process_time()
    while time.process_time() - since < 0.03:
        pass


BREACHES: Mapping[str, Callable[[], None]] = {
    "exception": lambda: [][0],
    "leak": lambda: check_text(f"a {CANARY}", "here"),
    "memory": lambda: sys.intern("x" * (MOST_BYTES + (10 << 20))) and None,
    "status": lambda: check_status(500, [500], "here"),
    "time": _compute,
    "undeclared": lambda: check_status(418, [200], "here"),
}


@pytest.mark.parametrize("law", BREACHES)
def test_a_breach_is_found_made_small_and_kept(
    tmp_path: pathlib.Path, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if law == "time":
        monkeypatch.setattr(laws, "MOST_SECONDS", 0.02)
        monkeypatch.setattr(pace, "measure", lambda: pace.Pace(1.0, 1.0))
    prepare()
    subject = Planted(BREACHES[law])
    report = Report()
    try_inputs(subject, 100, 1, report)
    [(failure, sent)] = report.failures.values()
    assert failure.law == law
    assert sent > 1000
    keep(subject, report, tmp_path)
    [(_, name, kept)] = cases(tmp_path)
    assert (name, kept) == ("planted", sent)


def test_runs_of_one_seed_are_the_same() -> None:
    runs = []
    for _ in range(2):
        inputs: list[Json] = []
        subject = Planted(lambda: None)
        subject.run = inputs.append  # type: ignore[method-assign]
        try_inputs(subject, 50, 7, Report())
        runs.append(inputs)
    assert runs[0] == runs[1]
