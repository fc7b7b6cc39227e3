"""Observes the stacks of projects, each once in an interval."""

import functools
import hashlib
import logging
import math

from sqlalchemy.engine import Connection

from ...db import drift
from ...db.drift import SEARCH, DueProject
from .context import FIRST_SHARD, DutyContext
from .slice_scan import SliceScan

LOG = logging.getLogger(__name__)
PAGE = 100
LONGEST_SEARCH_PAUSE = 300.0
"""Seconds between two searches for new projects, at most; it is a quarter of the interval if that is less."""


class Drift:
    """Takes each project of the slice that is due, and submits its observation to the background pool.

    A project keeps its moment within the interval, which follows from its id.  So observations are spread
    evenly over time, and by the projects' shards over conductors.  One that is lost with its conductor is
    made up for in the next interval.
    """

    interval = 2.0

    def __init__(self, context: DutyContext) -> None:
        assert context.drift is not None, "the registry makes this duty only where drift is observed"
        self._context = context
        self._settings = context.drift
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
        pause = self._settings.interval
        if project.project_id == SEARCH:
            pause = min(LONGEST_SEARCH_PAUSE, pause / 4)
        # Missed moments are left out; the phase stays.
        following = project.due_at + pause * max(1, math.ceil((now - project.due_at) / pause))
        if not self._context.database.write(lambda conn: drift.take(conn, project, following)):
            return
        if project.project_id == SEARCH:
            self._search(now)
        elif not self._background.submit(
            project.project_id, functools.partial(self._settings.observe, project.project_id)
        ):
            LOG.warning("Project %s is not observed this time: too many are", project.project_id)

    def _search(self, now: float) -> None:
        """Store the projects that have stacks, each with its moment in the interval that begins now."""
        database = self._context.database
        last = ""
        while True:
            names = database.read(functools.partial(drift.with_stacks, after=last, limit=PAGE))
            projects = [
                DueProject(name, self._settings.shard_of(name), now + self._settings.interval * _phase(name))
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
