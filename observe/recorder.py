"""Where the code says what has happened; see prometheus.py for who listens."""

import typing

from .metrics import Metric


class Recorder(typing.Protocol):
    """Keeps figures.  Thread-safe; never blocks, never raises for a metric of metrics.py."""

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Count.

        :param labels: values of the metric's labels, in its order.
        :param amount: 0: that there is something to count, from now on.
        """

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """One value for a histogram; below 0, as after a jump of the clock, it counts as 0."""


class Silent:
    """Implements Recorder where nobody looks."""

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """See Recorder."""

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """See Recorder."""


SILENT: Recorder = Silent()
