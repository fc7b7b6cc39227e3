"""Building the API from its configuration: apart from the rest, for conductors need nothing of it."""

import typing
from collections.abc import Callable

import sqlalchemy as sa
from oslo_config import cfg

from ...api.app import make_app
from ...api.context import ApiLimits, Services
from ...api.health import DatabaseHealth
from ...api.request_log import RequestLog
from ...engine.breakpoints import BreakpointOperations
from ...engine.exports import Exports
from ...engine.previews import Previews
from ...engine.signals import Signals
from ...engine.snapshots import Snapshots
from ...engine.stacks import StackOperations
from ...engine.updates import Updates
from ...engine.validate import Validation
from ...observe.exposition import Prometheus
from ..config.api_options import connection_limits, request_limits
from ..http.serving import HttpServer
from .connections import connect
from .keystone import behind_keystone, make_auth
from .parts import Parts, budget_limits, make_engine_context
from .presence import make_lookout


def make_api(
    parts: Parts,
    *,
    version: str,
    watch: RequestLog | None = None,
    draining: Callable[[], bool] = lambda: False,
) -> typing.Any:
    """The WSGI application.

    :param watch, draining: see Services.

    :raises WrongConfiguration: the options for Keystone or policy are not complete, or wrong.
    """
    conf = parts.conf
    context = make_engine_context(parts)
    services = Services(
        database=parts.database,
        orders=StackOperations(context),
        updates=Updates(context),
        validation=Validation(context),
        previews=Previews(context),
        signals=Signals(context),
        addresses=parts.addresses,
        snapshots=Snapshots(context),
        exports=Exports(context),
        breakpoints=BreakpointOperations(context),
        catalogue=parts.catalogue,
        sealer=parts.sealer,
        auth=make_auth(conf),
        clock=parts.database.clock,
        limits=ApiLimits(body_bytes=conf.api.max_body, page=conf.api.max_page, budget=budget_limits(conf)),
        build={"revision": version},
        watch=watch or RequestLog(parts.recorder),
        ailment=DatabaseHealth(_ping_of(conf)).ailment,
        figures=parts.recorder.text if isinstance(parts.recorder, Prometheus) and conf.metrics.api else None,
        roll=make_lookout(conf, keep=conf.coordination.poll).roll,
        draining=draining,
    )
    return behind_keystone(make_app(services), conf)


def make_http(app: typing.Any, conf: cfg.ConfigOpts, host: str, port: int) -> HttpServer:
    """Return a server for the API that is not started yet."""
    return HttpServer(
        app,
        host=host,
        port=port,
        threads=conf.api.threads,
        requests=request_limits(conf),
        connections=connection_limits(conf),
    )


def _ping_of(conf: cfg.ConfigOpts) -> Callable[[], object]:
    """Return a question to the database over a connection of its own: that all others are busy is no
    ailment."""
    database = connect(conf, pool_size=1)
    return lambda: database.read(lambda conn: conn.execute(sa.select(1)).scalar())


def requests(watch: RequestLog) -> str:
    """Those that run, for a report: without what they say."""
    running = sorted(watch.running(), key=lambda pair: -pair[1])
    lines = [f"{r.id} {r.method} {r.route} since {age:.3f} s, thread {r.thread}" for r, age in running]
    return "\n".join(lines or ["none"])
