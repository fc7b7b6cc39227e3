"""The processes that try faults: a fault in the ring is noticed, and none lives."""

import collections
import dataclasses
import pathlib

import pytest
from mutate import notes, servers
from mutate.__main__ import LOADING, planting
from mutate.kernel import ROOT
from mutate.operators import Mutant, mutants
from mutate.verdicts import Job, Outcome, Verdict

PATH = "ring/hashring.py"
TESTS = "tests/unit/ring/test_hashring.py"
MAP = f"{TESTS}::test_the_map_is_the_same_in_every_release"
SHARD = f"{TESTS}::test_the_shard_of_a_stack_is_the_same_in_every_release"


def fault(scope: str, before: str) -> Mutant:
    faults = mutants(PATH, (ROOT / PATH).read_text())
    return next(each for each in faults if (each.scope, each.before) == (scope, before))


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "noticed", "test"),
    [
        (planting([TESTS]), fault("shard_of", "8"), SHARD),
        (planting([TESTS]), fault("", "4096"), SHARD),
        (LOADING, fault("Member", "1.0"), MAP),
    ],
    ids=["in a function", "in a constant", "in a class"],
)
def test_a_fault_is_noticed_and_none_lives(
    *,
    arguments: tuple[str, ...],
    noticed: Mutant,
    test: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notes, "FOLDER", tmp_path)
    none = dataclasses.replace(noticed, after=noticed.before)
    jobs = collections.deque(Job(each, [test], seconds=300.0) for each in (none, noticed))
    verdicts: list[Verdict] = []
    assert servers.share(jobs, 1, arguments, lambda _, verdict: verdicts.append(verdict)) == []
    assert [each.outcome for each in verdicts] == [Outcome.LIVES, Outcome.NOTICED]
    assert verdicts[1].test == test
