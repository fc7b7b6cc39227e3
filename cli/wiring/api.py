"""The API, from the parts of a process; conductors need nothing of it."""

import typing
from collections.abc import Callable

from ...api.app import make_app
from ...api.context import Services
from ...api.request import ApiLimits
from ...api.request_log import RequestLog
from ...api.routes import ROUTES
from ...engine.breakpoints import BreakpointOperations
from ...engine.exports import Exports
from ...engine.previews import Previews
from ...engine.signals import Signals
from ...engine.snapshots import Snapshots
from ...engine.stacks import StackOperations
from ...engine.updates import Updates
from ...engine.validate import Validation
from .engine import make_engine_context
from .health import conductors_in_group, database_health
from .keystone import behind_keystone, make_auth
from .parts import Parts


def make_api(
    parts: Parts,
    *,
    version: str,
    log: RequestLog | None = None,
    draining: Callable[[], bool] = lambda: False,
    metrics_text: Callable[[], bytes] | None = None,
) -> typing.Any:
    """Make the WSGI application.

    :param log: see make_app.
    :param draining: see Services.
    :param metrics_text: makes the page of metrics; None: there is none.
    :raises WrongConfiguration: the options for Keystone or policy are not complete, or wrong.
    """
    conf = parts.conf
    context = make_engine_context(parts)
    services = Services(
        database=parts.database,
        stacks=StackOperations(context),
        updates=Updates(context),
        validation=Validation(context),
        previews=Previews(context),
        signals=Signals(context),
        snapshots=Snapshots(context),
        exports=Exports(context),
        breakpoints=BreakpointOperations(context),
        registry=parts.catalogue,
        sealer=parts.sealer,
        auth=make_auth(conf),
        clock=parts.database.clock,
        limits=ApiLimits(
            body_bytes=conf.api.max_body, page=conf.api.max_page, budget=context.settings.limits.budget
        ),
        build={"revision": version},
        health_problem=database_health(conf).problem,
        metrics=metrics_text,
        roll=conductors_in_group(conf),
        draining=draining,
    )
    return behind_keystone(
        make_app(services, ROUTES, parts.addresses, log=log or RequestLog(parts.recorder)), conf
    )


def requests(watch: RequestLog) -> str:
    """Return the running requests for a report, without their contents."""
    running = sorted(watch.running(), key=lambda pair: -pair[1])
    lines = [f"{r.id} {r.method} {r.route} since {age:.3f} s, thread {r.thread}" for r, age in running]
    return "\n".join(lines or ["none"])
