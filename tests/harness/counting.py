"""A recorder of metrics whose values a test can read."""

import collections

from stoker.observe.metrics import Metric


class Counting:
    """A recorder that stores all values."""

    def __init__(self) -> None:
        self.counts: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.values: dict[tuple[str, ...], list[float]] = {}

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        assert len(labels) == len(metric.labels)
        self.counts[(metric.name, *labels)] += int(amount)

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        assert len(labels) == len(metric.labels)
        self.values.setdefault((metric.name, *labels), []).append(value)

    def of(self, metric: Metric, *labels: str) -> int:
        return self.counts[(metric.name, *labels)]

    def observed(self, metric: Metric, *labels: str) -> list[float]:
        return self.values.get((metric.name, *labels), [])
