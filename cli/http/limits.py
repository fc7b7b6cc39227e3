"""Limits of the HTTP server."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLimits:
    """Limits of one request, in bytes.

    :ivar line: the limit of the request line.
    :ivar head: the limit of the request line and all header fields.
    :ivar fields: the number of header fields, not in bytes.
    :ivar body: the limit of the body.
    """

    line: int = 16384
    head: int = 65536
    fields: int = 100
    body: int = 8 * 1024 * 1024


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of connections.

    :ivar request: the seconds in which a request must have arrived, with its body.
    :ivar idle: the seconds for which a connection is kept without a request, or with a client that does
        not read.
    :ivar total: the number of connections at which one without a request in progress is closed for a new one.
    :ivar per_address: the number of connections of one client: an IPv4 address, or the first 64 bits of
        an IPv6 address; 0: any number.
    """

    request: float = 60.0
    idle: float = 75.0
    total: int = 500
    per_address: int = 100


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
