"""The kernel's metrics of the API and of the conductors, as data; a feature has its own.

The table in the documentation and the samples that exist from the start are generated from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..settings import Form, setting

API = "stoker-api"
CONDUCTOR = "stoker-conductor"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of the text that Prometheus reads."""
COUNTER = "counter"
GAUGE = "gauge"
HISTOGRAM = "histogram"

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds, in seconds, for the length of a transaction or a request."""
LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds, in seconds, for work that waits for other services."""


@dataclass(frozen=True)
class MetricsSettings:
    """The pages of metrics, and the health check of conductors."""

    host: str = setting(
        "host",
        "127.0.0.1",
        "Address at which a conductor serves its metrics and health.",
    )
    port: int = setting(
        "port",
        0,
        "Port at which a conductor serves /metrics, for Prometheus, and /healthcheck; each conductor of a "
        "host needs its own (--metrics-port). Neither needs authentication. 0: nothing is served or "
        "counted.",
        form=Form.PORT,
    )
    api: bool = setting(
        "api",
        False,
        "Whether the API serves /metrics. The page needs no token: it shows how much is done, not by whom, "
        "and is meant for the operator's network only. The workers of stoker-api answer for all of them; "
        "those of a WSGI server need a directory in the environment variable PROMETHEUS_MULTIPROC_DIR.",
    )


@dataclass(frozen=True)
class Metric:
    """One metric.

    :ivar name: as it is scraped; for a histogram without ``_bucket``, ``_sum`` and ``_count``.
    :ivar help: its meaning, in one sentence.
    :ivar programs: those that have it.
    :ivar labels: names of its labels.
    :ivar initial: values of the labels that exist from the start, at zero.
    :ivar bounds: of a histogram's buckets.
    """

    name: str
    kind: str
    help: str
    programs: tuple[str, ...] = (CONDUCTOR,)
    labels: tuple[str, ...] = ()
    initial: tuple[tuple[str, ...], ...] = ()
    bounds: tuple[float, ...] = ()


def each(*values: str) -> tuple[tuple[str, ...], ...]:
    """Return the initial values of a metric with one label."""
    return tuple((value,) for value in values)


BOTH = (API, CONDUCTOR)
METHODS = each("run_tasks", "cancel", "stop_tasks", "look_now", "activity")

HINTS_SENT = Metric(
    "stoker_hints_sent_total",
    COUNTER,
    "Messages that the broker has accepted: run_tasks announces work, cancel and stop_tasks request its end.",
    BOTH,
    ("method",),
    METHODS,
)
HINTS_LOST = Metric(
    "stoker_hints_lost_total",
    COUNTER,
    "Messages that the broker did not take; a duty sends their hints again.",
    BOTH,
    ("method",),
    METHODS,
)
HINTS_RECEIVED = Metric(
    "stoker_hints_received_total",
    COUNTER,
    "Messages received, by method.",
    labels=("method",),
    initial=METHODS,
)
HINTS_REFUSED = Metric(
    "stoker_hints_refused_total",
    COUNTER,
    "Messages in a form that this conductor does not support, by method: the senders are of a newer release.",
    labels=("method",),
    initial=METHODS,
)
HINTS_DROPPED = Metric(
    "stoker_hints_dropped_total", COUNTER, "Tasks whose hint was dropped because too many waited."
)
HINTS_REPEATED = Metric(
    "stoker_hints_redelivered_total",
    COUNTER,
    "Tasks whose hint was sent again because no conductor had claimed them.",
)
HINTS_WAITING = Metric("stoker_hints_waiting", GAUGE, "Tasks known by hint that wait for a free thread.")

SHARDS_OWNED = Metric("stoker_shards_owned", GAUGE, "Shards that this conductor owns.")
RING_MEMBERS = Metric(
    "stoker_ring_members", GAUGE, "Conductors in the group as this one sees it, draining ones included."
)
RING_INFO = Metric(
    "stoker_ring_info",
    GAUGE,
    "1, with the version of the ring that this conductor sees: equal where they see the same members.",
    labels=("version",),
)
CLOCK_AHEAD = Metric(
    "stoker_clock_ahead",
    GAUGE,
    "Seconds by which this host's clock is ahead of the database's, whose time counts.",
)
MEMBER = Metric("stoker_ring_member", GAUGE, "1 while this conductor is in the ring and may work, else 0.")
HEALTHY = Metric("stoker_healthy", GAUGE, "1 while /healthcheck answers 200, else 0.")
BUILD = Metric(
    "stoker_build_info", GAUGE, "1, with the release and the program.", BOTH, ("version", "program")
)

TASK_STATES = ("waiting", "ready", "running", "parked", "held", "done", "failed", "cancelled", "skipped")
TASKS = Metric(
    "stoker_tasks",
    GAUGE,
    "Tasks of this conductor's shards by state, as last counted; held ones wait at breakpoints.",
    labels=("state",),
    initial=each(*TASK_STATES),
)
TASKS_IN_HAND = Metric(
    "stoker_tasks_in_hand", GAUGE, "Tasks that this conductor has claimed and has not finished."
)

THREADS_BUSY = Metric(
    "stoker_threads_busy", GAUGE, "Steps that run or wait for a thread, without detached ones."
)
HELPERS_FILTERED = Metric(
    "stoker_helpers_filtered",
    GAUGE,
    "1 if the system filters the system calls of the helpers that evaluate expressions (seccomp), else 0.",
)
THREADS_MAX = Metric("stoker_threads_max", GAUGE, "Steps that can run at the same time.")
THREADS_WRITTEN_OFF = Metric(
    "stoker_threads_written_off",
    GAUGE,
    "Detached threads: they hang in calls that were cancelled, and were replaced.",
)

DUE_LAG = Metric(
    "stoker_due_lag_seconds",
    HISTOGRAM,
    "From when a task (by its state), or a stack's deadline, was due until a duty dealt with it.",
    labels=("what",),
    initial=each("ready", "running", "parked", "held", "stack"),
    bounds=LONG,
)
CLAIM_WAIT = Metric(
    "stoker_claim_wait_seconds",
    HISTOGRAM,
    "From the moment at which a task could be claimed until it was.",
    bounds=LONG,
)
COMMIT = Metric(
    "stoker_commit_seconds",
    HISTOGRAM,
    "Length of the transactions that store results and claim tasks.",
    bounds=SHORT,
)
STEP = Metric(
    "stoker_step_seconds", HISTOGRAM, "Length of steps, by the kind of task.", labels=("kind",), bounds=LONG
)
DUTY = Metric(
    "stoker_duty_seconds", HISTOGRAM, "Length of the rounds of a duty.", labels=("duty",), bounds=SHORT
)
DUTY_ERRORS = Metric("stoker_duty_errors_total", COUNTER, "Rounds of a duty that failed.", labels=("duty",))

RESULTS = Metric(
    "stoker_results_total",
    COUNTER,
    "Results of steps that were stored, by kind of task and the state that it came to.",
    labels=("kind", "state"),
)
REFUSED = Metric(
    "stoker_results_refused_total",
    COUNTER,
    "Late results: the task had been taken away, so the fence refused them.",
)
TIMEOUTS = Metric(
    "stoker_timeouts_total",
    COUNTER,
    "Timeouts of stacks' actions and of resources' actions.",
    labels=("what",),
    initial=each("stack", "resource"),
)
TAKEOVERS = Metric("stoker_takeovers_total", COUNTER, "Tasks of dead conductors that others took over.")
TAKEN_AWAY = Metric(
    "stoker_tasks_taken_away_total", COUNTER, "Tasks taken away from conductors that did not stop them."
)
CANCELS_ASKED = Metric(
    "stoker_cancels_asked_total", COUNTER, "Tasks of this conductor that it was asked to cancel."
)
CANCELS_ANSWERED = Metric(
    "stoker_cancels_answered_total",
    COUNTER,
    "Answers to cancel requests: stopped, given_up (the thread is detached), or not_held (no such task).",
    labels=("how",),
    initial=each("stopped", "given_up", "not_held"),
)

DATABASE_RETRIES = Metric(
    "stoker_database_retries_total",
    COUNTER,
    "Transactions that were retried after a deadlock or a lost connection.",
    BOTH,
)
DATABASE_LOCKED = Metric(
    "stoker_database_locked_total",
    COUNTER,
    "Transactions that failed because another one held a row for too long.",
    BOTH,
)
DATABASE_ERRORS = Metric(
    "stoker_database_errors_total",
    COUNTER,
    "Transactions that failed because the database did not answer.",
    BOTH,
)

REQUESTS = Metric(
    "stoker_api_requests_total",
    COUNTER,
    "Requests, by template of the route, method and status.",
    (API,),
    ("route", "method", "status"),
)
REQUEST = Metric(
    "stoker_api_request_seconds",
    HISTOGRAM,
    "From a request's arrival until its answer is made, by template of the route and method.",
    (API,),
    ("route", "method"),
    bounds=SHORT,
)

METRICS: Sequence[Metric] = tuple(
    sorted(
        (metric for metric in dict(globals()).values() if isinstance(metric, Metric)), key=lambda m: m.name
    )
)
"""The kernel's, by name."""


@dataclass(frozen=True)
class Sample:
    """The value of a gauge now, with the values of its labels."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()
