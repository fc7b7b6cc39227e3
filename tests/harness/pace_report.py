"""Reports at the end of a run of tests how slow the machine was, without which its minutes say little."""

import statistics
import time
from collections.abc import Callable

import pytest
from harness.pace import Pace, measure

APART = 15.0
"""Seconds between two measurements; each takes a fraction of one."""


class PaceReport:
    """Measures now and then during a run, in the process that distributes the tests.

    :param now: seconds that never jump.
    """

    def __init__(
        self, measured: Callable[[], Pace] = measure, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._measured = measured
        self._now = now
        self._due = now()
        self._paces: list[Pace] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Measure once a test has ended, unless that was done a moment ago."""
        if self._now() >= self._due:
            self._paces.append(self._measured())
            self._due = self._now() + APART

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the median and the range of what was measured."""
        if len(self._paces) > 1:
            terminalreporter.write_line(self.text())

    def text(self) -> str:
        """Return the line that is printed."""
        times = sorted(pace.processor for pace in self._paces)
        middle = statistics.median(times)
        low = times[0]
        high = times[-1]
        return (
            f"This machine took {middle:.1f} times ({low:.1f} to {high:.1f}) as much of a processor's time "
            "as the one for which the suite's minutes are meant."
        )
