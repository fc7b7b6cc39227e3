"""The interface through which the code records metrics; prometheus.py implements it."""

import typing

from .metrics import Metric


class Recorder(typing.Protocol):
    """Keeps metrics.  Thread-safe; never blocks, never raises for a metric of metrics.py."""

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Add to a counter.

        :param labels: values of the metric's labels, in its order.
        :param amount: 0 makes the sample exist, at zero.
        """

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """Record one value of a histogram; a value below 0, as after a jump of the clock, counts as 0."""


class Silent:
    """Implements Recorder where no metrics are read."""

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Do nothing."""

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """Do nothing."""


SILENT: Recorder = Silent()
