"""Building the observation of drift."""

import functools

from ...conductor.drift.context import DriftServices
from ...conductor.drift.observer import ProjectObserver
from ...conductor.drift.records import DriftRecords
from ...conductor.duties.context import DriftSettings
from ...conductor.steps.endpoints import Endpoints
from ...engine.context import EngineContext
from ...engine.updates import Updates
from ...ring.hashring import shard_of
from ..config.client_options import client_options
from .parts import Parts


def make_drift(parts: Parts, context: EngineContext, host: str) -> DriftSettings | None:
    """Return the observation of drift; None: [drift] does not enable it."""
    section = parts.conf.drift
    if not section.enabled:
        return None
    services = DriftServices(
        database=parts.database,
        registry=parts.catalogue,
        sealer=parts.sealer,
        clock=parts.database.clock,
        session=context.delegations.session,
        host=host,
        endpoints=Endpoints(client_options(parts.conf)),
        recorder=parts.recorder,
    )
    heal = Updates(context).heal if section.heal else None
    records = DriftRecords(services, interval=section.interval, heal=heal)
    shard = functools.partial(shard_of, shard_count=parts.shard_count)
    return DriftSettings(section.interval, ProjectObserver(services, records).observe, shard)
