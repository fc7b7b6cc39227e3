"""The counts of what schedules cover, and their focus on what is rare."""

import itertools
import pathlib

import pytest
from simulation.campaign import ROUND, SOUGHT, rounds
from simulation.coverage import ARROWS, PAIRS, Arrow, Coverage, Pair
from simulation.schedule import play
from stoker.db.states import TaskState

LENGTH = 150
RARE = Pair("double", "UPDATE")


def test_a_focus_brings_its_fault_to_its_action(tmp_path: pathlib.Path) -> None:
    (tmp_path / "usual").mkdir()
    (tmp_path / "focused").mkdir()
    usual = play(3, tmp_path / "usual", LENGTH).coverage
    focused = play(3, tmp_path / "focused", LENGTH, focus=RARE).coverage
    assert focused.pairs[RARE] > usual.pairs[RARE] + 1
    assert usual.arrows[Arrow(TaskState.RUNNING, TaskState.DONE)] > 0


def test_half_of_the_later_rounds_seek_the_rarest_pairs() -> None:
    covered = Coverage()
    every = rounds(range(ROUND), LENGTH, covered)
    assert {job.focus for job in next(every)} == {None}
    covered.add(Coverage(runs=ROUND, pairs={pair: 1 for pair in PAIRS if pair != RARE}))
    focuses = [job.focus for job in next(every)]
    assert focuses.count(None) == ROUND / 2
    assert focuses.count(RARE) >= ROUND / 2 // SOUGHT
    assert len(set(focuses)) == 1 + SOUGHT
    assert len(list(itertools.chain.from_iterable(every))) == 0


def test_the_report_names_what_never_occurred() -> None:
    covered = Coverage(runs=1)
    covered.arrows.update(dict.fromkeys(ARROWS[1:], 1))
    covered.note("kill", ["UPDATE"])
    report = covered.report()
    assert str(ARROWS[0]) in report.split("Never: ")[1]
    assert "kill:UPDATE" not in report
    assert f"1 of {len(PAIRS)} pairs" in report


def test_a_pair_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="kill:NOTHING: no pair of kill, pause"):
        Pair.parse("kill:NOTHING")
