"""Options of what is shown to Prometheus and load balancers."""

from oslo_config import cfg

API_DRAIN = (
    "Seconds, from the signal to stop, in which requests are still answered while /healthcheck says 503: "
    "a load balancer finds out before the end. 0: the service ends with the requests in progress."
)
METRICS = [
    cfg.StrOpt("host", default="127.0.0.1", help="Address at which a conductor shows how it does."),
    cfg.PortOpt(
        "port",
        default=0,
        help="Port of a conductor for /metrics, which Prometheus reads, and /healthcheck; for each conductor "
        "of a host another one (--metrics-port). Neither needs a right. 0: nothing is shown, and nothing is "
        "counted.",
    ),
    cfg.BoolOpt(
        "api",
        default=False,
        help="Whether the API has the path /metrics. It needs no token: it tells how much is done, not by "
        "whom, and is meant for the operator's network only. API processes that answer at one address need "
        "a directory in the environment variable PROMETHEUS_MULTIPROC_DIR.",
    ),
]

METRICS_OF_ONE = [
    # Not [metrics] port itself: where the file of such an argument is wrong oslo.config tells it unclearly.
    cfg.PortOpt("metrics-port", help="[metrics] port of this conductor."),
]
"""Arguments of a conductor."""


def prefer_argument(conf: cfg.ConfigOpts, program: str) -> None:
    """What the command line says goes before the files."""
    if program == "stoker-conductor" and conf.metrics_port is not None:
        conf.set_override("port", conf.metrics_port, "metrics")
