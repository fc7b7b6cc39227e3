"""Options of the API, and the limits that are made of them."""

from oslo_config import cfg

from ..http.limits import ConnectionLimits, RequestLimits
from .metrics_options import API_DRAIN

API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "a token of Keystone's is needed; [keystone_authtoken] says how it is checked"),
            ("none", "everybody may do everything with the tenant that the path names"),
        ],
        help="Who may use the API.",
    ),
    cfg.StrOpt("bind_host", default="127.0.0.1", help="Address that stoker-api listens on."),
    cfg.PortOpt("bind_port", default=8004, help="Port that stoker-api listens on."),
    cfg.IntOpt(
        "workers",
        default=1,
        min=1,
        help="Processes of stoker-api that answer requests at the same address. One process computes on one "
        "processor core, however many threads it has, so more of them answer more requests that compute, "
        "such as creates of large stacks. Each takes about 60 MiB of memory, and connections to the database "
        "and to the message bus of its own; the limits of threads and connections hold for each.",
    ),
    cfg.IntOpt(
        "threads",
        default=16,
        min=1,
        help="Requests that one process answers at the same time. Most of them wait for the database; more "
        "threads need a larger [database] pool_size.",
    ),
    cfg.URIOpt(
        "public_url",
        default="http://127.0.0.1:8004",
        help="Root under which the API is reached from outside; it stands in the URLs of signals.",
    ),
    cfg.FloatOpt("drain", default=0.0, min=0, help=API_DRAIN),
    cfg.IntOpt("max_page", default=1000, min=0, help="Entries of a list, at the most; 0: no limit."),
    cfg.IntOpt(
        "max_body",
        default=RequestLimits().body,
        min=1024,
        help="Bytes of a request's body, at the most; a longer one is answered with 413 before it is read. A "
        "body is kept in memory up to 256 KiB, behind that in a temporary file.",
    ),
    cfg.IntOpt(
        "max_header",
        default=RequestLimits().head,
        min=4096,
        help="Bytes of a request's first line and header fields together, at the most; more are answered "
        "with 431. The first line may have a quarter of them (else 414), and there may be 100 fields.",
    ),
    cfg.FloatOpt(
        "request_timeout",
        default=ConnectionLimits().request,
        min=1,
        help="Seconds from a request's first byte to its last one; then it is answered with 408. Longer lets "
        "slower clients send larger bodies, shorter frees the connections of those that never end.",
    ),
    cfg.FloatOpt(
        "keep_alive",
        default=ConnectionLimits().idle,
        min=1,
        help="Seconds for which a connection is kept without a request, or while its client reads nothing of "
        "an answer. Longer than that of a proxy in front, or the proxy meets closed connections.",
    ),
    cfg.IntOpt(
        "max_connections",
        default=ConnectionLimits().total,
        min=1,
        help="Connections at the most. A new one takes the place of the one that has waited longest without "
        "a complete request, and is answered with 503 where all have one. Each costs some kilobytes, and up "
        "to two open files.",
    ),
    cfg.IntOpt(
        "max_connections_per_address",
        default=ConnectionLimits().per_address,
        min=0,
        help="Connections at the most of one client: an IPv4 address, or the first 64 bits of an IPv6 "
        "address; more are answered with 503. 0: any number, for a service that is reached through a proxy "
        "only, which limits them itself.",
    ),
]


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
