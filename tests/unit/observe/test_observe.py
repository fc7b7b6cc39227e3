"""The metrics as Prometheus reads them, and their names."""

import pathlib
import re
import subprocess
import sys

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from stoker.cli.features import FEATURES
from stoker.cli.wiring.database import count_troubles
from stoker.cli.wiring.metrics import metrics_of
from stoker.db.engine import Database
from stoker.db.errors import Unavailable
from stoker.observe import metrics
from stoker.observe.metrics import API, CONDUCTOR, COUNTER, GAUGE, HISTOGRAM, METRICS, Sample
from stoker.observe.prometheus import SHARED, Prometheus


def samples(text: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.parametrize("metric", metrics_of(FEATURES), ids=lambda metric: metric.name)
def test_a_metrics_name_follows_the_conventions(metric: metrics.Metric) -> None:
    assert re.fullmatch(r"stoker_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == COUNTER)
    assert metric.name.endswith("_seconds") == (metric.kind == HISTOGRAM), "in the base unit"
    assert bool(metric.bounds) == (metric.kind == HISTOGRAM)
    assert metric.help.endswith(".")
    assert all(len(labels) == len(metric.labels) for labels in metric.initial)
    assert not {"tenant", "project", "stack", "user"} & {*metric.labels}, "no tenant's data"


@pytest.mark.parametrize("program", [API, CONDUCTOR])
def test_what_has_not_happened_yet_is_there_at_zero(program: str) -> None:
    page_samples = samples(Prometheus(program, environment={}).text())
    for metric in (metric for metric in METRICS if program in metric.programs):
        name = f"{metric.name}_count" if metric.kind == HISTOGRAM else metric.name
        for labels in metric.initial or ([()] if not metric.labels else []):
            if metric.kind != GAUGE:
                assert page_samples[name, labels] == 0


def test_counts_values_and_gauges_are_recorded() -> None:
    gauges = lambda: [Sample(metrics.TASKS, 4, ("held",)), Sample(metrics.RING_INFO, 1, ("cafe",))]  # noqa: E731
    recorder = Prometheus(CONDUCTOR, gauges=gauges, environment={})
    recorder.add(metrics.TIMEOUTS, "stack", amount=3)
    recorder.add(metrics.TAKEOVERS)
    recorder.observe(metrics.COMMIT, value=0.003)
    recorder.observe(metrics.COMMIT, value=-5.0)
    recorder.add(metrics.REQUESTS, "/", "GET", "200")  # Not a conductor's: nobody minds.
    values = samples(recorder.text())
    assert values["stoker_timeouts_total", ("stack",)] == 3
    assert values["stoker_takeovers_total", ()] == 1
    assert values["stoker_commit_seconds_count", ()] == 2
    assert values["stoker_commit_seconds_sum", ()] == pytest.approx(0.003), "a clock that jumps takes nothing"
    assert values["stoker_commit_seconds_bucket", ("0.0025",)] == 1
    assert values["stoker_tasks", ("held",)] == 4
    assert values["stoker_ring_info", ("cafe",)] == 1
    assert not any(name.startswith("stoker_api") for name, _ in values)


COUNT = """
from stoker.observe import metrics
from stoker.observe.prometheus import Prometheus
kept = Prometheus("stoker-api")
kept.add(metrics.REQUESTS, "/", "GET", "200", amount=5)
kept.observe(metrics.REQUEST, "/", "GET", value=0.1)
print(kept.text().decode())
"""


def test_processes_that_share_a_directory_tell_the_sum(tmp_path: pathlib.Path) -> None:
    for number in (1, 2):
        done = subprocess.run(
            [sys.executable, "-c", COUNT], capture_output=True, env={SHARED: str(tmp_path)}, check=True
        )
        values = samples(done.stdout)
        # Here the library gives labels in the order of their names.
        assert values["stoker_api_requests_total", ("GET", "/", "200")] == 5 * number
        assert values["stoker_api_request_seconds_count", ("GET", "/")] == number


def test_a_directory_that_is_none_is_reported(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match=f"{SHARED}: .* cannot write into the directory {tmp_path}/nothing"):
        Prometheus(API, environment={SHARED: f"{tmp_path}/nothing"})


def test_a_database_that_is_unavailable_is_counted_by_tries_and_errors() -> None:
    recorder = Prometheus(API, environment={})
    away = Database(
        "postgresql+psycopg://u@127.0.0.1:1/none",
        tries=4,
        sleep=lambda seconds: None,
        troubled=count_troubles(recorder),
    )
    for _ in range(2):
        with pytest.raises(Unavailable):
            away.read(lambda conn: conn.execute(sa.select(1)))
    values = samples(recorder.text())
    assert values["stoker_database_retries_total", ()] == 6
    assert values["stoker_database_errors_total", ()] == 2
