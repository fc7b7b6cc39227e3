"""Counts the tasks of the slice for the metrics."""

import collections
from collections.abc import Iterator, Mapping

from ...db.ids import TaskId
from ...db.queries import overview
from ...db.states import TaskState
from ...observe import metrics
from ...observe.metrics import Sample
from .context import DutyContext

PAGE = 5000


class TaskCounts:
    """Counts tasks by state, one page in a round.

    The cost of a round does not grow with the number of tasks; only the age of the counts does.  It runs only
    where metrics are collected.

    :ivar counts: result of the last complete count.
    """

    interval = 5.0

    def __init__(self, context: DutyContext, *, page: int = PAGE) -> None:
        self._context = context
        self._page = page
        self._after = TaskId(0)
        self._counting: collections.Counter[str] = collections.Counter()
        self.counts: Mapping[str, int] = {}

    def run(self) -> None:
        """Count one page; start over after the last."""
        context = self._context
        after = self._after
        page = self._page
        rows = context.database.read(lambda conn: overview.task_states(conn, after=after, limit=page))
        self._counting.update(state for _, shard, state in rows if context.ring.owns(shard))
        if len(rows) == page:
            self._after = rows[-1][0]
            return
        self.counts = dict(self._counting)
        self._after = TaskId(0)
        self._counting = collections.Counter()

    def samples(self) -> Iterator[Sample]:
        """Return a gauge for each state."""
        for state in TaskState:
            yield Sample(metrics.TASKS, self.counts.get(state, 0), (state,))
