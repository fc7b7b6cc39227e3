"""Options of the API, the limits that they set, and the addresses that servers get of it."""

import os

from oslo_config import cfg

from ..http.limits import ConnectionLimits, RequestLimits
from .declared import NetworkType

API_DRAIN = (
    "Seconds from SIGTERM to the stop, in which requests are still answered while /healthcheck returns 503, "
    "so that a load balancer stops sending requests in time. 0: only running requests are finished."
)
_REQUEST = RequestLimits()
_CONNECTION = ConnectionLimits()
API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "a Keystone token is required; [keystone_authtoken] says how it is validated"),
            ("none", "everybody may do everything in the project that the path names"),
        ],
        help="Who may use the API.",
    ),
    cfg.StrOpt("bind_host", default="127.0.0.1", help="Address on which stoker-api listens."),
    cfg.PortOpt("bind_port", default=8004, help="Port on which stoker-api listens."),
    cfg.IntOpt(
        "workers",
        min=1,
        sample_default="the number of processor cores",
        help="Processes of stoker-api that answer requests at the same address. One process computes on one "
        "processor core, however many threads it has. Each takes about 100 MiB of memory, and connections to "
        "the database and to the message bus of its own; the limits of threads and connections hold for "
        "each. Fewer processes leave processor cores and memory to other services of the host.",
    ),
    cfg.IntOpt(
        "threads",
        default=16,
        min=1,
        help="Requests that one process answers at the same time. Most of them wait for the database; more "
        "threads need a larger [database] pool_size.",
    ),
    cfg.IntOpt(
        "threads_per_project",
        default=0,
        min=0,
        help="Requests of one project that one process answers at the same time; 0: half of the threads. Its "
        "other requests wait without a thread, and are refused with 429 where more wait than a quarter "
        "of max_connections. One thread is reserved for projects with few recent requests.",
    ),
    cfg.IntOpt(
        "max_requests_per_minute",
        default=0,
        min=0,
        help="Maximum number of requests of one project in a minute, for each process; 0: no limit. More are "
        "refused with 429. Guests that poll their metadata count, too.",
    ),
    cfg.URIOpt(
        "public_url",
        default="http://127.0.0.1:8004",
        help="Root URL under which users reach the API. Stoker puts it into the URLs of signals.",
    ),
    cfg.ListOpt(
        "allowed_hosts",
        default=[],
        help="Names, without ports and separated by commas, under which clients reach an API whose "
        "auth_strategy is none, besides addresses, localhost, the name of the machine, and the hosts of "
        "bind_host, public_url, metadata_url and waitcondition_url. Other names are refused, because a "
        "web page could otherwise read all stacks by DNS rebinding.",
    ),
    cfg.ListOpt(
        "trusted_proxies",
        item_type=NetworkType(),
        default=[],
        help="Addresses or networks of the proxies in front, separated by commas, such as 10.0.0.5 or "
        "10.0.0.0/24. For requests from there the limit of unknown keys and failed logins counts the client "
        "that X-Forwarded-For names, which these proxies must set; for others the address of the connection.",
    ),
    cfg.BoolOpt(
        "console",
        default=True,
        help="Serve the console, pages for browsers, at /console/ below public_url. Its users log in with "
        "their password or token of Keystone, which the API passes on to the auth_url of "
        "[keystone_authtoken].",
    ),
    cfg.URIOpt(
        "horizon_url",
        schemes=["http", "https"],
        help="Address of Horizon, such as https://cloud.example.org/horizon. The console links stacks and "
        "resources of clouds to their pages there. Empty: it shows no links.",
    ),
    cfg.FloatOpt("drain", default=0.0, min=0, help=API_DRAIN),
    cfg.IntOpt("max_page", default=1000, min=0, help="Maximum number of entries of a list; 0: no limit."),
    cfg.IntOpt(
        "max_read",
        default=67108864,
        min=0,
        help="Maximum size in bytes of the stored values that are read for one answer, such as the "
        "templates, properties and reasons of what a list shows. The process needs up to ten times as much "
        "memory meanwhile, and [api] threads may do so at once. A request for more is refused with 400, and "
        "its user can ask for shorter pages. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_body",
        default=_REQUEST.body,
        min=1024,
        help="Maximum size of a request's body in bytes; a longer one is refused with 413 before it is "
        "read. A body up to 256 KiB is kept in memory, a longer one in a temporary file.",
    ),
    cfg.IntOpt(
        "max_header",
        default=_REQUEST.head,
        min=4096,
        help="Maximum size in bytes of a request's first line and header fields together; more is "
        "refused with 431. The first line may take a quarter of it (else 414), and at most 100 "
        "fields are allowed.",
    ),
    cfg.FloatOpt(
        "request_timeout",
        default=_CONNECTION.request,
        min=1,
        help="Seconds from the first byte of a request to its last one; then it is refused with 408. "
        "Longer lets slower clients send larger bodies, shorter frees the connections of requests "
        "that never end.",
    ),
    cfg.FloatOpt(
        "keep_alive",
        default=_CONNECTION.idle,
        min=1,
        help="Seconds for which a connection stays open without a request, or while its client does "
        "not read the response. It must be longer than that of a proxy in front, or the proxy "
        "meets closed connections.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=_CONNECTION.total,
        min=1,
        help="Maximum number of connections. A new one replaces the one that has waited longest "
        "without a complete request; if all have one, it is refused with 503. Each costs some "
        "kilobytes, and up to two open files.",
    ),
    cfg.IntOpt(
        "max_connections_per_address",
        default=_CONNECTION.per_address,
        min=0,
        help="Maximum number of connections per client: an IPv4 address, or the first 64 bits of an "
        "IPv6 address; more are refused with 503. 0: no limit, for a service behind a proxy that "
        "limits its clients itself.",
    ),
]

GUESTS = [
    cfg.URIOpt(
        "metadata_url",
        schemes=["http", "https"],
        sample_default="that of [api] public_url",
        help="Root URL under which the agents in servers reach the API to read their metadata, e.g. "
        "http://10.0.0.1:8004, or Heat's heat_metadata_server_url. Servers seldom reach what users reach. "
        "heat-cfntools need a URL without a path. A change reaches existing servers when their stacks are "
        "updated, so keep the old address in service until then.",
    ),
    cfg.URIOpt(
        "waitcondition_url",
        schemes=["http", "https"],
        sample_default="that of [api] public_url",
        help="Root URL under which servers, and services such as alarming, reach the API to send signals to "
        "addresses that carry a signature; Heat's heat_waitcondition_server_url, with /v1/waitcondition at "
        "its end, works, too.",
    ),
    cfg.StrOpt(
        "default_software_config_transport",
        default="POLL_SERVER_CFN",
        choices=["POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL"],
        help="Transport by which servers read their metadata if the template names none; the same for all "
        "processes.",
    ),
    cfg.StrOpt(
        "default_deployment_signal_transport",
        default="CFN_SIGNAL",
        choices=["CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL"],
        help="Transport by which servers signal that they have applied a deployment if the template names "
        "none; the same for all processes.",
    ),
]


def worker_processes(conf: cfg.ConfigOpts) -> int:
    """Return how many processes answer requests: as many as cores that this one may use, by default."""
    return int(conf.api.workers or len(os.sched_getaffinity(0)))


def request_limits(conf: cfg.ConfigOpts) -> RequestLimits:
    """Return the limits of a request."""
    return RequestLimits(line=conf.api.max_header // 4, head=conf.api.max_header, body=conf.api.max_body)


def connection_limits(conf: cfg.ConfigOpts) -> ConnectionLimits:
    """Return the limits of connections."""
    return ConnectionLimits(
        request=conf.api.request_timeout,
        idle=conf.api.keep_alive,
        total=conf.api.max_connections,
        per_address=conf.api.max_connections_per_address,
    )
