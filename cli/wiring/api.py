"""The API, from the parts of a process; conductors need nothing of it."""

import typing
from collections.abc import Callable
from dataclasses import replace

from oslo_config import cfg

from ...api.app import IDENTIFIER, QUIET, RequestLog, make_app
from ...api.rates import RequestRates
from ...api.strangers import Strangers
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .engine import make_engine_context
from .keystone import behind_keystone
from .messaging import Notifications
from .pages import make_origin_guard, make_pages
from .parts import Parts
from .routes import ROUTES
from .services import make_services

if typing.TYPE_CHECKING:
    from ...api.audit import AuditLog


def make_api(
    parts: Parts,
    *,
    version: str,
    log: RequestLog | None = None,
    draining: Callable[[], bool] = lambda: False,
    metrics_text: Callable[[], bytes] | None = None,
) -> typing.Any:
    """Make the WSGI application.

    :param log: the counter and log of requests; None: no request is counted or logged.
    :param draining: a function that returns whether the service is about to end.
    :param metrics_text: the function that makes the page of metrics; None: there is no such page.
    :raises WrongConfiguration: the options for Keystone or policy are not complete, or wrong.
    """
    context = make_engine_context(parts)
    services = make_services(parts, context, version=version, draining=draining, metrics_text=metrics_text)
    settings = Settings(parts.conf)
    limits = replace(
        settings.api_limits,
        budget=context.settings.limits.budget,
        hidden_tags=context.settings.hidden_tags,
    )
    rates = RequestRates(settings.api.max_requests_per_minute)
    services = replace(
        services,
        limits=limits,
        count_request=rates.check,
        count_key=RequestRates(settings.api.max_requests_per_minute).check,
        strangers=Strangers(settings.api.trusted_proxies),
    )
    pages = make_pages(parts.conf, version)
    app = make_app(
        services,
        ROUTES,
        parts.addresses,
        log=log or RequestLog(parts.recorder),
        pages=pages,
        guard=make_origin_guard(parts.conf),
    )
    if (audit := make_audit(parts.conf, parts.notifications)) is not None:
        app.add_middleware(audit)
    return behind_keystone(app, parts.conf)


def make_audit(conf: cfg.ConfigOpts, notifications: Notifications | None) -> "AuditLog | None":
    """Make the middleware that sends an event of each audited request; None: no request is audited.

    :param notifications: the sender; None: no driver is configured.
    :raises WrongConfiguration: requests are to be audited, and no driver is configured.
    """
    audited = Settings(conf).audit.requests
    if audited == "none":
        return None
    if notifications is None:
        raise WrongConfiguration(
            "[audit] requests: events are notifications, and [oslo_messaging_notifications] driver is missing"
        )
    # The library of the events would make every start longer.
    from ...api.audit import AuditLog  # noqa: PLC0415

    reads = audited == "all"
    return AuditLog(notifications.notifier.audit, reads=reads, quiet=QUIET, identifier=IDENTIFIER)


def requests(log: RequestLog) -> str:
    """Return the running requests for a report, without their contents."""
    running = sorted(log.running(), key=lambda pair: -pair[1])
    lines = [f"{r.id} {r.method} {r.route} since {age:.3f} s, thread {r.thread}" for r, age in running]
    return "\n".join(lines or ["none"])
