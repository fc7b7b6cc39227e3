"""Options of metrics and health checks."""

from oslo_config import cfg

API_DRAIN = (
    "Seconds from SIGTERM to the stop, in which requests are still answered while /healthcheck returns 503, "
    "so that a load balancer stops sending requests in time. 0: only running requests are finished."
)
METRICS = [
    cfg.StrOpt(
        "host", default="127.0.0.1", help="Address at which a conductor serves its metrics and health."
    ),
    cfg.PortOpt(
        "port",
        default=0,
        help="Port at which a conductor serves /metrics, for Prometheus, and /healthcheck; each "
        "conductor of a host needs its own (--metrics-port). Neither needs authentication. 0: "
        "nothing is served or counted.",
    ),
    cfg.BoolOpt(
        "api",
        default=False,
        help="Whether the API serves /metrics. The page needs no token: it shows how much is done, not "
        "by whom, and is meant for the operator's network only. The workers of stoker-api answer for all of "
        "them; those of a WSGI server need a directory in the environment variable PROMETHEUS_MULTIPROC_DIR.",
    ),
]

METRICS_OF_ONE = [
    # Not [metrics] port itself: where the file of such an argument is wrong oslo.config reports it unclearly.
    cfg.PortOpt("metrics-port", help="[metrics] port of this conductor."),
]
"""Arguments of a conductor."""


def prefer_argument(conf: cfg.ConfigOpts, program: str) -> None:
    """Prefer the port on the command line to the one in the files."""
    if program == "stoker-conductor" and conf.metrics_port is not None:
        conf.set_override("port", conf.metrics_port, "metrics")
