"""The metrics of a process in Prometheus' text format, by its client library.

A process has a registry of its own, so the metrics of other libraries stay outside.  Several processes that
answer at one address (an API under uWSGI) share files in the directory that the environment variable
PROMETHEUS_MULTIPROC_DIR names, which the library reads when it is imported.  Each then reports the sums of
all.
"""

import os
import pathlib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from .metrics import COUNTER, GAUGE, HISTOGRAM, METRICS, Metric, Sample

SHARED = "PROMETHEUS_MULTIPROC_DIR"
Gauges = Callable[[], Iterable[Sample]]


def share(directory: str) -> None:
    """Let this process, and its forks, share their metrics in an empty directory.

    The library chooses the class of values when it is imported, long before the configuration is read; so it
    chooses again.
    """
    os.environ[SHARED] = directory
    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]


class Prometheus:
    """Implements Recorder.

    :param program: the name of the program, as in metrics.py.
    :param metrics: those that some program has.
    :param gauges: called at each scrape, in the thread of the server that answers; must not block.
    :param environment: of the process.
    :raises OSError: the directory that the processes are to share cannot be written.
    """

    def __init__(
        self,
        program: str,
        *,
        metrics: Iterable[Metric] = METRICS,
        gauges: Gauges = lambda: (),
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._metrics = [metric for metric in metrics if program in metric.programs]
        self._gauges: list[Gauges] = [gauges]
        self._shared = environment.get(SHARED)
        if self._shared is not None:
            _check_directory(pathlib.Path(self._shared))
        program_registry = CollectorRegistry(auto_describe=False)
        self._kept: dict[str, typing.Any] = {
            metric.name: _make(metric, program_registry) for metric in self._metrics if metric.kind != GAUGE
        }
        self._registry = program_registry if self._shared is None else CollectorRegistry(auto_describe=False)
        if self._shared is not None:
            collector: typing.Any = MultiProcessCollector
            collector(self._registry, self._shared)
        self._registry.register(_Gauges(self._sample, self._metrics))

    def watch(self, gauges: Gauges) -> None:
        """Add gauges that are read at each scrape, too."""
        self._gauges.append(gauges)

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Count; see `Recorder`."""
        if metric.name in self._kept:
            self._child(metric, labels).inc(amount)

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """Record a value; see `Recorder`."""
        if metric.name in self._kept:
            self._child(metric, labels).observe(max(0.0, value))

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return prometheus_client.generate_latest(self._registry)

    def _child(self, metric: Metric, labels: tuple[str, ...]) -> typing.Any:
        collector = self._kept[metric.name]
        return collector.labels(*labels) if labels else collector

    def _sample(self) -> Iterator[Sample]:
        for gauges in self._gauges:
            yield from gauges()


class _Gauges:
    """A collector of prometheus_client."""

    def __init__(self, sample: Gauges, metrics: Iterable[Metric]) -> None:
        self._sample = sample
        self._metrics = [metric for metric in metrics if metric.kind == GAUGE]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = {
            metric.name: GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for metric in self._metrics
        }
        for sample in self._sample():
            families[sample.metric.name].add_metric(list(sample.labels), sample.value)
        return (family for family in families.values() if family.samples)


def _make(metric: Metric, registry: CollectorRegistry) -> Counter | Histogram:
    collector: Counter | Histogram
    if metric.kind == COUNTER:
        collector = Counter(metric.name, metric.help, metric.labels, registry=registry)
    else:
        assert metric.kind == HISTOGRAM
        collector = Histogram(
            metric.name, metric.help, metric.labels, registry=registry, buckets=metric.bounds
        )
    for labels in metric.initial:
        collector.labels(*labels)
    return collector


def _check_directory(path: pathlib.Path) -> None:
    if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
        raise NotADirectoryError(f"{SHARED}: this process cannot write into the directory {path}")
