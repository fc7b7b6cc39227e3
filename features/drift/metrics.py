"""The metrics of the observation of drift."""

from ...observe.metrics import COUNTER, HISTOGRAM, LONG, Metric, each

OBSERVED = Metric(
    "stoker_drift_observed_total",
    COUNTER,
    "Resources compared with the cloud, by outcome; unknown: a service did not answer.",
    labels=("outcome",),
    initial=each("in_sync", "changed", "gone", "unknown"),
)
LISTS = Metric(
    "stoker_drift_requests_total",
    COUNTER,
    "Lists, and single things, that were read to observe drift, by service.",
    labels=("service",),
)
HEALED = Metric("stoker_drift_healings_total", COUNTER, "Updates that began because a stack had drifted.")
SECONDS = Metric(
    "stoker_drift_seconds", HISTOGRAM, "Seconds that the observation of a project took.", bounds=LONG
)
METRICS = (OBSERVED, LISTS, HEALED, SECONDS)
