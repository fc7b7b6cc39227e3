"""Settings of the API."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from ..settings import Bytes, Form, Seconds, given, setting
from ..template.budget import BudgetLimits

NOBODY = "none"
"""The strategy by which nobody is authenticated."""


@dataclass(frozen=True)
class AuthSettings:
    """The authentication of users."""

    strategy: str = setting(
        "auth_strategy",
        "keystone",
        "Who may use the API.",
        choices={
            "keystone": "a Keystone token is required; [keystone_authtoken] says how it is validated",
            NOBODY: "everybody may do everything in the project that the path names",
        },
    )

    @property
    def has_keystone(self) -> bool:
        """Return whether Keystone authenticates users."""
        return self.strategy != NOBODY


@dataclass(frozen=True)
class ApiSettings:
    """The addresses of the API, and who may send how much to it."""

    max_requests_per_minute: int = setting(
        "max_requests_per_minute",
        0,
        "Maximum number of requests of one project in a minute, for each process; 0: no limit. More are "
        "refused with 429. Guests that poll their metadata count, too.",
        least=0,
    )
    public_url: str = setting(
        "public_url",
        "http://127.0.0.1:8004",
        "Root URL under which users reach the API. Stoker puts it into the URLs of signals.",
        form=Form.URL,
    )
    allowed_hosts: Sequence[str] = setting(
        "allowed_hosts",
        (),
        "Names, without ports and separated by commas, under which clients reach an API whose auth_strategy "
        "is none, besides addresses, localhost, the name of the machine, and the hosts of bind_host, "
        "public_url, metadata_url and waitcondition_url. Other names are refused, because a web page could "
        "otherwise read all stacks by DNS rebinding.",
    )
    trusted_proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = setting(
        "trusted_proxies",
        (),
        "Addresses or networks of the proxies in front, separated by commas, such as 10.0.0.5 or "
        "10.0.0.0/24. For requests from there the limit of unknown keys and failed logins counts the client "
        "that X-Forwarded-For names, which these proxies must set; for others the address of the "
        "connection.",
    )
    console: bool = setting(
        "console",
        True,
        "Serve the console, pages for browsers, at /console/ below public_url. Its users log in with their "
        "password or token of Keystone, which the API passes on to the auth_url of [keystone_authtoken].",
    )
    horizon_url: str | None = setting(
        "horizon_url",
        None,
        "Address of Horizon, such as https://cloud.example.org/horizon. The console links stacks and "
        "resources of clouds to their pages there. Empty: it shows no links.",
        form=Form.HTTP_URL,
    )
    drain: Seconds = setting(
        "drain",
        0.0,
        "Seconds from SIGTERM to the stop, in which requests are still answered while /healthcheck returns "
        "503, so that a load balancer stops sending requests in time. 0: only running requests are "
        "finished.",
        least=0,
    )


@dataclass(frozen=True)
class ApiLimits:
    """Limits of a request.

    :ivar budget: the highest cost of the documents and the shown outputs of one request.
    :ivar hidden_tags: the tags whose stacks lists omit, unless the user asks for them.
    """

    page: int = setting(
        "max_page",
        1000,
        "Maximum number of entries of a list; 0: no limit.",
        least=0,
    )
    read_bytes: Bytes = setting(
        "max_read",
        64 * 1024 * 1024,
        "Maximum size in bytes of the stored values that are read for one answer, such as the templates, "
        "properties and reasons of what a list shows. The process needs up to ten times as much memory "
        "meanwhile, and [api] threads may do so at once. A request for more is refused with 400, and its "
        "user can ask for shorter pages. 0: no limit.",
        least=0,
    )
    body_bytes: Bytes = setting(
        "max_body",
        8 * 1024 * 1024,
        "Maximum size of a request's body in bytes; a longer one is refused with 413 before it is read. A "
        "body up to 256 KiB is kept in memory, a longer one in a temporary file.",
        least=1024,
    )
    budget: BudgetLimits = given(BudgetLimits())
    hidden_tags: Sequence[str] = ()


@dataclass(frozen=True)
class AuditSettings:
    """The audit of requests."""

    requests: str = setting(
        "requests",
        "none",
        "Requests of which the API sends audit events in the form of CADF, as notifications "
        "`audit.http.response`; [oslo_messaging_notifications] driver must name a driver. Events of all "
        "requests are as many as the requests.",
        choices={
            "none": "no request",
            "changes": "requests that create, change or delete, and refused ones of that kind",
            "all": "reads, too, but for health checks, metrics and the pages of the console",
        },
    )
