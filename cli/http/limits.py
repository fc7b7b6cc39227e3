"""Limits of the HTTP server."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from ...api.settings import ApiLimits
from ...settings import Bytes, Form, Seconds, setting


@dataclass(frozen=True)
class ServerSettings:
    """The address of stoker-api, its processes, and their threads."""

    host: str = setting(
        "bind_host",
        "127.0.0.1",
        "Address on which stoker-api listens.",
    )
    port: int = setting(
        "bind_port",
        8004,
        "Port on which stoker-api listens.",
        form=Form.PORT,
    )
    workers: int | None = setting(
        "workers",
        None,
        "Processes of stoker-api that answer requests at the same address. One process computes on one "
        "processor core, however many threads it has. Each adds 40 to 80 MiB of memory, and connections "
        "to the database and to the message bus of its own; the limits of threads and connections hold for "
        "each. Fewer processes leave processor cores and memory to other services of the host.",
        least=1,
        default_text="the number of processor cores",
    )
    threads: int = setting(
        "threads",
        16,
        "Requests that one process answers at the same time. Most of them wait for the database; more "
        "threads need a larger [database] pool_size.",
        least=1,
    )
    threads_per_project: int = setting(
        "threads_per_project",
        0,
        "Requests of one project that one process answers at the same time; 0: half of the threads. Its "
        "other requests wait without a thread, and are refused with 429 where more wait than a quarter of "
        "max_connections. One thread is reserved for projects with few recent requests.",
        least=0,
    )

    @property
    def processes(self) -> int:
        """Return how many processes answer requests: as many as cores that this one may use, by default."""
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class RequestLimits:
    """Limits of one request, in bytes.

    :ivar fields: the number of header fields, not in bytes.
    :ivar body: the limit of the body.
    """

    head: Bytes = setting(
        "max_header",
        65536,
        "Maximum size in bytes of a request's first line and header fields together; more is refused with "
        "431. The first line may take a quarter of it (else 414), and at most 100 fields are allowed.",
        least=4096,
    )
    fields: int = 100
    body: int = ApiLimits.body_bytes

    @property
    def line(self) -> int:
        """Return the limit of the request line."""
        return self.head // 4


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections."""

    request: Seconds = setting(
        "request_timeout",
        60.0,
        "Seconds from the first byte of a request to its last one; then it is refused with 408. Longer lets "
        "slower clients send larger bodies, shorter frees the connections of requests that never end.",
        least=1,
    )
    idle: Seconds = setting(
        "keep_alive",
        75.0,
        "Seconds for which a connection stays open without a request, or while its client does not read the "
        "response. It must be longer than that of a proxy in front, or the proxy meets closed connections.",
        least=1,
    )
    total: int = setting(
        "max_connections",
        500,
        "Maximum number of connections. A new one replaces the one that has waited longest without a "
        "complete request; if all have one, it is refused with 503. Each costs some kilobytes, and up to "
        "two open files.",
        least=1,
    )
    per_address: int = setting(
        "max_connections_per_address",
        100,
        "Maximum number of connections per client: an IPv4 address, or the first 64 bits of an IPv6 "
        "address; more are refused with 503. 0: no limit, for a service behind a proxy that limits its "
        "clients itself.",
        least=0,
    )


@dataclass(frozen=True)
class Fairness:
    """The shares of projects in one server.

    The project is that of the address, before the token is checked: a client without one can delay the
    project that it names, but no other.

    :ivar project_of: a function that returns the project of a decoded path; "": the path names none.
    :ivar share: the threads of one project; 0: half of all threads.
    :ivar most_waiting: the number of requests of one project that may wait for a thread; 0: any number.
    """

    project_of: Callable[[str], str]
    share: int = 0
    most_waiting: int = 125
