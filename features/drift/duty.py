"""Observes the stacks of projects, each once in an interval."""

import dataclasses
import functools
import hashlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...conductor.duties.context import FIRST_SHARD, DutyContext, DutyServices
from ...conductor.duties.registry import ACTIVE, DutyEntry
from ...conductor.duties.slice_scan import SliceScan
from ...db.queries.due_soon import DueRows
from ...db.schema import tables
from ...engine.updates import heal_stack
from ...ring.hashring import shard_of
from . import rows as drift
from .context import DriftServices
from .observer import ProjectObserver
from .records import DriftRecords
from .rows import SEARCH, DriftSettings, DueProject

LOG = logging.getLogger(__name__)
PAGE = 100
LONGEST_SEARCH_PAUSE = 300.0
"""Seconds between two searches for new projects, at most; it is a quarter of the interval if that is less."""

_POLICY = dataclasses.replace(ACTIVE, is_routine=True)
_DUE = DueRows("drift", tables.drift_project.c.due_at, tables.drift_project.c.shard)


@dataclass(frozen=True)
class Observing:
    """The observation of projects, as the duty needs it.

    :ivar interval: seconds between two observations of a stack.
    :ivar observe: observes all stacks of a project, whose id is its argument.
    :ivar shard_of: returns the shard of a project by its id.
    """

    interval: float
    observe: Callable[[str], None]
    shard_of: Callable[[str], int]


def make_duties(settings: DriftSettings, services: DutyServices) -> Mapping[str, DutyEntry]:
    """Return the duty that observes drift; none where it is not enabled."""
    if not settings.enabled:
        return {}
    context = services.context
    drift_services = DriftServices(
        database=context.database,
        registry=context.registry,
        sealer=context.sealer,
        clock=context.clock,
        session=context.delegations.session,
        host=services.host,
        endpoints=services.endpoints,
        recorder=services.recorder,
    )
    heal = functools.partial(heal_stack, context) if settings.heal else None
    records = DriftRecords(drift_services, interval=settings.interval, heal=heal)
    shard = functools.partial(shard_of, shard_count=context.settings.shard_count)
    observing = Observing(settings.interval, ProjectObserver(drift_services, records).observe, shard)
    return {"Drift": DutyEntry(functools.partial(Drift, observing=observing), _POLICY, due=[_DUE])}


class Drift:
    """Takes each project of the slice that is due, and submits its observation to the background pool.

    A project keeps its moment within the interval, which follows from its id.  So observations are spread
    evenly over time, and by the projects' shards over conductors.  One that is lost with its conductor is
    made up for in the next interval.
    """

    interval = 2.0

    def __init__(self, context: DutyContext, *, observing: Observing) -> None:
        self._context = context
        self._observing = observing
        self._scan = SliceScan(context, "Observed project")
        self._background = context.background("The observation")
        self._has_begun = False

    def run(self) -> None:
        """Submit all projects that are due now."""
        now = self._context.clock()
        database = self._context.database
        if not self._has_begun:
            search = DueProject(SEARCH, FIRST_SHARD, now)
            database.write(lambda conn: drift.add_projects(conn, [search]))
            self._has_begun = True

        def read(conn: Connection, after: tuple[float, str]) -> list[DueProject]:
            return drift.due(conn, now, limit=PAGE, after=after)

        pages = self._scan.pages(
            read, start=(0.0, ""), position=lambda project: (project.due_at, project.project_id), size=PAGE
        )
        for page in pages:
            for project in page:
                if self._context.ring.owns(project.shard):
                    self._take(project, now)

    def _take(self, project: DueProject, now: float) -> None:
        pause = self._observing.interval
        if project.project_id == SEARCH:
            pause = min(LONGEST_SEARCH_PAUSE, pause / 4)
        # Missed moments are left out; the phase stays.
        following = project.due_at + pause * max(1, math.ceil((now - project.due_at) / pause))
        if not self._context.database.write(lambda conn: drift.take(conn, project, following)):
            return
        if project.project_id == SEARCH:
            self._search(now)
        elif not self._background.submit(
            project.project_id, functools.partial(self._observing.observe, project.project_id)
        ):
            LOG.warning(
                "Project %s is not observed this time: too many other projects are", project.project_id
            )

    def _search(self, now: float) -> None:
        """Store the projects that have stacks, each with its moment in the interval that begins now."""
        database = self._context.database
        last = ""
        while True:
            names = database.read(functools.partial(drift.with_stacks, after=last, limit=PAGE))
            interval = self._observing.interval
            projects = [
                DueProject(name, self._observing.shard_of(name), now + interval * _phase(name))
                for name in names
            ]
            database.write(functools.partial(drift.add_projects, projects=projects))
            if len(names) < PAGE:
                return
            last = names[-1]


def _phase(project_id: str) -> float:
    """Return the place of a project within an interval: at least 0, below 1."""
    digest = hashlib.blake2b(project_id.encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2.0**48
