"""The services that the API's handlers work with, from the parts of a process."""

from collections.abc import Callable

from oslo_config import cfg

from ...api.operations import Services
from ...engine.context import EngineContext
from ...engine.guests import Guests
from ...features.software.views import guest_config_view
from ..features import FEATURES
from .accounts import account_health
from .cloud import make_cloud_checks, make_downloads
from .database import database_health
from .keystone import make_auth, make_ec2
from .parts import Parts
from .routes import columns_of, services_of


def make_services(
    parts: Parts,
    context: EngineContext,
    *,
    version: str,
    draining: Callable[[], bool],
    metrics_text: Callable[[], bytes] | None,
) -> Services:
    """Make the services of the API's handlers.

    :param draining: a function that returns whether the service is about to end.
    :param metrics_text: the function that makes the page of metrics; None: there is no such page.
    :raises WrongConfiguration: the policy is wrong.
    """
    conf = parts.conf
    return Services(
        database=parts.database,
        context=context,
        guests=Guests(context, parts.addresses, lambda config: guest_config_view(config, parts.sealer)),
        registry=parts.catalogue,
        sealer=parts.sealer,
        auth=make_auth(conf),
        clock=parts.database.clock,
        build={"revision": version},
        health_problem=_health_problem(conf),
        metrics=metrics_text,
        cloud=make_cloud_checks(conf, parts.database.clock).of,
        downloads=make_downloads(conf),
        draining=draining,
        ec2=make_ec2(conf),
        poll_ring=parts.messaging.outbox.poll_now,
        columns=columns_of(FEATURES),
        features=services_of(FEATURES, parts, context),
    )


def _health_problem(conf: cfg.ConfigOpts) -> Callable[[], str | None]:
    """Return a function that returns why the API cannot do its work; None: it can."""
    database = database_health(conf)
    keystone = account_health(conf)
    return lambda: database.problem() or keystone.problem()
