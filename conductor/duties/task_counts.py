"""Counting the tasks of the slice, for those who look at the figures."""

import collections
from collections.abc import Mapping

from ...db.engine import Database
from ...db.ids import TaskId
from ...db.queries import task_counts
from ..slice import Ring

PAGE = 5000


class Census:
    """Counts tasks by state, PAGE of them in a round: what it costs does not grow with their number, only how
    old the figures are.  Run only where the figures are asked for.

    :ivar counts: those of the last time that all had been seen.
    """

    interval = 5.0

    def __init__(self, *, database: Database, ring: Ring, page: int = PAGE) -> None:
        self._database = database
        self._ring = ring
        self._page = page
        self._after = TaskId(0)
        self._counting: collections.Counter[str] = collections.Counter()
        self.counts: Mapping[str, int] = {}

    def run(self) -> None:
        """One page; behind the last one it begins anew."""
        after, page = self._after, self._page
        found = self._database.read(lambda conn: task_counts.page(conn, after=after, limit=page))
        self._counting.update(state for _, shard, state in found if self._ring.owns(shard))
        if len(found) == page:
            self._after = found[-1][0]
            return
        self.counts = dict(self._counting)
        self._after, self._counting = TaskId(0), collections.Counter()
