"""The measure by which tests scale bounds in seconds."""

import pytest
from harness.pace import REFERENCE, Pace, measure
from harness.pace_report import APART, PaceReport


class Host:
    """A host on which the work takes a given time."""

    def __init__(self, processor: float, wall: float) -> None:
        self.clocks = [0.0, 0.0]
        self._takes = processor, wall

    def run(self) -> None:
        self.clocks = list(self._takes)

    def measured(self) -> Pace:
        return measure(self.run, processor=lambda: self.clocks[0], wall=lambda: self.clocks[1])


def test_bounds_grow_on_a_slower_and_on_a_crowded_host():
    slow = Host(processor=2 * REFERENCE, wall=6 * REFERENCE).measured()
    assert list(slow) == pytest.approx([2.0, 6.0])
    assert list(slow.worse(Pace(3.0, 1.0))) == pytest.approx([3.0, 6.0])


def test_bounds_never_shrink():
    assert Host(processor=REFERENCE / 2, wall=REFERENCE / 2).measured() == (1.0, 1.0)


def test_the_real_clocks_are_read():
    assert all(1.0 <= factor < 100_000 for factor in measure())


def test_a_run_reports_the_pace_of_its_machine():
    clock = [0.0]
    paces = iter([Pace(2.0, 9.0), Pace(4.0, 9.0), Pace(2.5, 9.0)])
    report = PaceReport(lambda: next(paces), lambda: clock[0])
    for passed in (0.0, 1.0, APART, APART):
        clock[0] += passed
        report.pytest_runtest_logreport(None)
    assert "2.5 times (2.0 to 4.0)" in report.text()
